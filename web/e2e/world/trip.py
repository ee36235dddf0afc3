"""Plans trips by asking the other agents of the demonstration world: a chain, a fan-out in which
some fail, a call to an agent that may be restarting, a person's decision, and a mail."""

import asyncio
import os

from agentfield import Agent
from agentfield.logger import log_error, log_info, log_warn

app = Agent(node_id="trip", version="2.3.1", description="Plans trips")


async def asked(target: str, **input):
    """A call whose failure is a part of the plan."""
    try:
        return await app.call(target, **input)
    except Exception as error:  # noqa: BLE001 - whatever it was, the plan goes on without it
        log_warn(f"{target} did not answer: {error}")
        return None


@app.reasoner()
async def plan(city: str = "Lyon", days: int = 24, person: bool = True) -> dict:
    """Geocodes, asks for the weather of each day at once, finds a hotel, has the budget approved."""
    log_info(f"planning {days} days in {city}")
    app.note(f"planning **{city}**", ["trip", city])
    place = await app.call("geo.resolve", city=city)
    weather = await asyncio.gather(
        *(asked("weather.lookup", city=city, day=day, latitude=place["latitude"]) for day in range(1, days + 1))
    )
    known = [each for each in weather if each]
    if len(known) < days:
        log_error(f"{days - len(known)} of {days} days have no weather")
    hotel = await app.call("hotel.search", city=city, nights=len(known))
    decision = {"approved": True, "by": "nobody"}
    if person:
        decision = await app.call("budget.approve", city=city, amount=hotel["price"] * len(known))
    app.note(f"budget {'approved' if decision['approved'] else 'refused'}", ["budget"])
    if not decision["approved"]:
        raise ValueError(f"the budget for {city} was refused")
    sent = await app.call("mail.send", to="traveller@example.org", subject=f"{city}, {len(known)} days")
    return {"city": city, "days": len(known), "hotel": hotel, "mail": sent, "budget": decision}


@app.reasoner()
async def nightly(fail: bool = False) -> dict:
    """A run of several levels; at the end it fails if it is told to."""
    cities = ["Lyon", "Graz", "Brno"]
    plans = await asyncio.gather(*(app.call("trip.city", city=city) for city in cities))
    rendered = [await app.call("report.render", city=one["city"], broken=fail and one["city"] == "Brno") for one in plans]
    return {"cities": rendered}


@app.reasoner()
async def city(city: str) -> dict:
    """Two levels below `nightly`."""
    place = await app.call("geo.resolve", city=city)
    for day in range(1, 4):
        await asked("weather.lookup", city=city, day=day, latitude=place["latitude"])
    return {"city": city, **place}


@app.reasoner()
async def helper(text: str) -> dict:
    """Called in this process: the plane only observes it."""
    await asyncio.sleep(0.05)
    return {"helped": text}


@app.reasoner()
async def observed() -> dict:
    """Calls a function of this process directly, three times."""
    return {"inner": [await helper(text=str(n)) for n in range(3)]}


@app.reasoner()
async def slow_tree(width: int = 6, seconds: float = 600) -> dict:
    """Calls that take long, for cancelling and pausing."""
    await asyncio.gather(*(app.call("weather.slow", seconds=seconds, n=n) for n in range(width)))
    return {}


if __name__ == "__main__":
    app.run(host="127.0.0.1", port=int(os.environ["AGENT_PORT"]), auto_port=False)
