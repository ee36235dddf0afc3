"""Makes up a forecast, with a skill of its own."""

from agentfield import Agent

app = Agent(node_id="forecaster")


@app.reasoner()
async def forecast(city: str, day: int) -> dict:
    """Calls a skill of this agent through the plane, so that it is a step as well."""
    celsius = await app.call("forecaster.temperature", city=city, day=day)
    return {"day": day, "celsius": celsius}


@app.skill()
def temperature(city: str, day: int) -> int:
    """The same city and day always give the same number."""
    return (sum(city.encode()) * 7 + day * 5) % 35


if __name__ == "__main__":
    app.run()
