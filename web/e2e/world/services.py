"""The agents that trips ask: geo, weather, hotel, budget, mail, report. One process is one of
them; `ROLE` says which."""

import asyncio
import os
from enum import Enum
from typing import Optional

from agentfield import Agent
from agentfield.logger import log_info
from pydantic import BaseModel, Field

ROLE = os.environ["ROLE"]
app = Agent(node_id=ROLE, version="1.4.0")


class Board(str, Enum):
    none = "none"
    breakfast = "breakfast"
    half = "half board"


class Guest(BaseModel):
    name: str = Field(min_length=1, max_length=80, description="As in the passport")
    born: int = Field(ge=1900, le=2026)
    vegetarian: bool = False


class Stay(BaseModel):
    """Everything a form can be made of."""

    city: str = Field(description="Where", examples=["Lyon"])
    nights: int = Field(default=3, ge=1, le=30)
    board: Board = Board.breakfast
    guests: list[Guest] = Field(default_factory=list, max_length=6)
    budget: Optional[float] = Field(default=None, description="Per night, in euros")
    tags: list[str] = []
    booking: int = Field(default=9223372036854775807, description="2^63 - 1, exact")
    notes: dict[str, str] = {}


if ROLE == "geo":

    @app.skill()
    async def resolve(city: str) -> dict:
        """Where a city is."""
        await asyncio.sleep(0.2)
        n = sum(city.encode())
        return {"latitude": 40 + n % 20, "longitude": n % 15, "id": 9223372036854775807}


if ROLE == "weather":

    @app.reasoner(tags=["forecast"])
    async def lookup(city: str, day: int, latitude: float = 45.0) -> dict:
        """Every seventh day of a city has a row without its city: KeyError."""
        await asyncio.sleep(0.1 + (day * 7919 % 50) / 50)
        row = {"celsius": 9 + (day * 5) % 17} if day % 7 == 0 else {"city": city, "celsius": 9 + (day * 5) % 17}
        log_info(f"looked up day {day}")
        return {"city": row["city"], "day": day, "celsius": row["celsius"]}

    @app.reasoner()
    async def slow(seconds: float = 60, n: int = 0) -> dict:
        """Takes as long as it is told."""
        for second in range(int(seconds)):
            log_info(f"still here after {second} s")
            await asyncio.sleep(1)
        return {"n": n}


if ROLE == "hotel":

    @app.reasoner()
    async def search(city: str, nights: int = 3) -> dict:
        """Finds a room."""
        await asyncio.sleep(0.6)
        return {"hotel": f"Hôtel {city}", "price": 84, "nights": nights}

    @app.reasoner(tags=["booking"])
    async def book(stay: Stay, confirm: bool = False) -> dict:
        """A function with a rich schema."""
        return {"booked": confirm, "stay": stay.model_dump(mode="json") if isinstance(stay, BaseModel) else stay}


if ROLE == "budget":

    @app.reasoner()
    async def approve(city: str, amount: float) -> dict:
        """Waits for a person, at most an hour."""
        app.note(f"asks for {amount} € for {city}", ["budget"])
        result = await app.pause(
            approval_request_id=f"budget-{city}-{os.urandom(3).hex()}",
            approval_request_url="https://example.org/approve",
            expires_in_hours=1,
            timeout=3600,
        )
        return {"approved": result.approved, "by": "a person", "feedback": result.feedback}


if ROLE == "mail":

    @app.skill()
    async def send(to: str, subject: str) -> dict:
        """Says what it cost."""
        await asyncio.sleep(0.09)
        entry = {
            "provider": "openai", "model": "gpt-5-mini", "input_tokens": 1240, "output_tokens": 310,
            "total_tokens": 1550, "cost_usd": 0.0123, "cost_source": "reported",
        }
        usage = {
            "total_cost_usd": 0.0123, "total_input_tokens": 1240, "total_output_tokens": 310,
            "total_tokens": 1550, "entries": [entry],
        }
        return {"sent": True, "to": to, "__agentfield_usage__": usage}


if ROLE == "report":

    @app.reasoner()
    async def render(city: str, broken: bool = False) -> dict:
        """Fails as programs fail."""
        row = {} if broken else {"city": city}
        return {"title": f"Report of {row['city']}"}

    @app.reasoner()
    async def hostile(text: str = "") -> dict:
        """Says hostile things wherever an agent can say something."""
        app.note(text, ["<b>tag</b>", "\u202etag"])
        log_info(text)
        return {text or "key": text, "big": 9223372036854775807, "tiny": 5e-324, "nested": {"__proto__": {"a": [text]}}}

    @app.reasoner()
    async def hostile_error(text: str = "") -> dict:
        """Fails with hostile words."""
        log_info(text)
        raise ValueError(text)

    @app.skill()
    async def big(mebibytes: int = 64) -> dict:
        """A large result: long lines, deep lists, and a string over the fold."""
        line = "0123456789abcdef" * 4096
        return {"mebibytes": mebibytes, "lines": [line] * (mebibytes * 16 - 1)}

    @app.skill()
    async def logs(lines: int = 10_000) -> dict:
        """Writes many log lines, a hundred in one message: one request for each line is more than
        the SDK's pool of connections takes, and a line that waits 5 s for it is lost."""
        ends = {0: "info", 1: "debug", 2: "warn"}
        for first in range(0, lines, 100):
            await app.client.post_execution_logs(
                app.ctx.execution_id,
                [
                    {"level": ends.get(n % 50, "info"), "message": f"line {n} of {lines}", "event_type": "log"}
                    for n in range(first, min(first + 100, lines))
                ],
            )
        log_info(f"wrote {lines} lines")
        return {"lines": lines}


if __name__ == "__main__":
    app.run(host="127.0.0.1", port=int(os.environ["AGENT_PORT"]), auto_port=False)
