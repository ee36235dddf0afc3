"""One agent with a reasoner and a skill."""

from agentfield import Agent

# The plane is the one that AGENTFIELD_SERVER names; `muster dev` sets it. Else the local one.
app = Agent(node_id="hello-python")


@app.reasoner()
async def greet(name: str) -> dict:
    """Greets somebody. A reasoner answers at once and reports its result later."""
    return {"greeting": f"Hello, {name}"}


@app.skill()
def add(a: int, b: int) -> int:
    """Adds two numbers. A skill answers with its value."""
    return a + b


if __name__ == "__main__":
    app.run()
