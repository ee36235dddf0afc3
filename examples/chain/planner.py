"""Plans a trip by asking the other agent, once for each day."""

import asyncio

from agentfield import Agent

app = Agent(node_id="planner")


@app.reasoner()
async def plan(city: str, days: int = 3) -> dict:
    """Asks the forecaster for each day at the same time. Every call is a step of this run."""
    forecasts = await asyncio.gather(
        *(app.call("forecaster.forecast", city=city, day=day) for day in range(1, days + 1))
    )
    best = max(forecasts, key=lambda forecast: forecast["celsius"])
    return {"city": city, "best_day": best["day"], "forecasts": forecasts}


if __name__ == "__main__":
    app.run()
