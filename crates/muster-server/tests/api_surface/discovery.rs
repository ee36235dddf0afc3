//! Which agents there are and what they offer.

use serde_json::{Value, json};

use crate::agent::{Agent, registration};
use crate::on_each_store;
use crate::world::World;

on_each_store!(
    agents_are_found_with_what_they_offer,
    filters_narrow_and_pages_hold_together,
    the_compact_and_the_xml_form_say_the_same,
);

async fn find(world: &World, query: &str) -> Value {
    let path = format!("/api/v1/discovery/capabilities{query}");
    let answer = world.get(&path).await;
    answer.is(200);
    answer.json()
}

fn ids(found: &Value) -> Vec<&str> {
    let list = found["capabilities"].as_array().unwrap();
    list.iter()
        .map(|c| c["agent_id"].as_str().unwrap())
        .collect()
}

async fn agents_are_found_with_what_they_offer(world: World) {
    assert_eq!(find(&world, "").await["total_agents"], 0);
    Agent::start(&world, "finder").await;
    let found = find(&world, "?agent=finder&include_input_schema=true").await;
    assert_eq!(found["total_agents"], 1);
    assert_eq!(
        (&found["total_reasoners"], &found["total_skills"]),
        (&json!(1), &json!(1))
    );
    let one = &found["capabilities"][0];
    assert_eq!(
        (&one["agent_id"], &one["version"]),
        (&json!("finder"), &json!("1.2.3"))
    );
    assert_eq!(one["health_status"], "active");
    assert_eq!(one["deployment_type"], "long_running");
    assert!(one["last_heartbeat"].is_string() && one["base_url"].is_string());
    let work = &one["reasoners"][0];
    assert_eq!(
        (&work["id"], &work["tags"]),
        (&json!("work"), &json!(["heavy"]))
    );
    assert_eq!(work["invocation_target"], "finder:work");
    assert_eq!(work["description"], "Works <hard> & long");
    assert!(work["input_schema"]["properties"]["n"].is_object());
    assert!(work.get("output_schema").is_none());
    assert_eq!(one["skills"][0]["invocation_target"], "finder:skill:add");
    let bare = find(
        &world,
        "?include_descriptions=false&include_output_schema=true",
    )
    .await;
    let work = &bare["capabilities"][0]["reasoners"][0];
    assert!(work.get("description").is_none() && work.get("input_schema").is_none());
    assert!(work["output_schema"].is_object());
    // One that never beat is unknown, and says so.
    let body = registration("quiet", "http://127.0.0.1:9");
    world
        .post("/api/v1/nodes/register", &[], body)
        .await
        .is(201);
    let quiet = find(&world, "?agent=quiet").await;
    assert_eq!(quiet["capabilities"][0]["health_status"], "unknown");
    assert_eq!(quiet["capabilities"][0]["last_heartbeat"], Value::Null);
}

async fn filters_narrow_and_pages_hold_together(world: World) {
    for id in ["a1", "a2", "b1"] {
        Agent::start(&world, id).await;
    }
    for (query, want) in [
        ("?agent_ids=a1,b1", vec!["a1", "b1"]),
        ("?node_id=a2", vec!["a2"]),
        ("?agent=nobody", vec![]),
        ("?reasoner=w*", vec!["a1", "a2", "b1"]),
        ("?reasoner=nothing", vec![]),
        ("?tags=team-a%2A", vec!["a1", "a2"]),
        ("?tags=none,light", vec!["a1", "a2", "b1"]),
        ("?health_status=ACTIVE", vec!["a1", "a2", "b1"]),
        ("?health_status=inactive", vec![]),
        ("?limit=2", vec!["a1", "a2"]),
        ("?limit=2&offset=2", vec!["b1"]),
        ("?offset=18446744073709551615", vec![]),
    ] {
        assert_eq!(ids(&find(&world, query).await), want, "{query}");
    }
    let page = find(&world, "?limit=2").await;
    assert_eq!(page["total_agents"], 3, "the total is of all that fit");
    assert_eq!(
        page["pagination"],
        json!({ "limit": 2, "offset": 0, "has_more": true })
    );
    let light = find(&world, "?tags=light&agent=a1").await;
    assert_eq!(
        (&light["total_reasoners"], &light["total_skills"]),
        (&json!(0), &json!(1))
    );
    let skills = find(&world, "?skill=a*&agent=a1").await;
    assert_eq!(skills["capabilities"][0]["reasoners"], json!([]));
    assert_eq!(skills["capabilities"][0]["skills"][0]["id"], "add");
    for bad in [
        "?format=yaml",
        "?health_status=fine",
        "?limit=-1",
        "?include_examples=perhaps",
        "?offset=1e9",
    ] {
        let path = format!("/api/v1/discovery/capabilities{bad}");
        world.get(&path).await.is_problem(400, "validation");
    }
}

async fn the_compact_and_the_xml_form_say_the_same(world: World) {
    Agent::start(&world, "finder").await;
    let compact = find(&world, "?format=compact").await;
    let one =
        json!([{ "id": "work", "agent_id": "finder", "target": "finder:work", "tags": ["heavy"] }]);
    assert_eq!(compact["reasoners"], one);
    assert_eq!(compact["skills"][0]["target"], "finder:skill:add");
    let xml = world.get("/api/v1/discovery/capabilities?format=xml").await;
    xml.is(200);
    assert!(
        xml.headers["content-type"]
            .to_str()
            .unwrap()
            .starts_with("application/xml")
    );
    assert!(
        xml.text
            .contains(r#"<reasoner id="work" target="finder:work">"#),
        "{xml:?}"
    );
    assert!(xml.text.contains("Works &lt;hard&gt; &amp; long"));
}
