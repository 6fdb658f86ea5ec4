//! The entries have the form that the clients document.

use super::*;

/// Returns where `value` doesn't have the form of `schema`, which uses a few words of JSON Schema.
fn faults(schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let kind = match value {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::Null => "null",
    };
    if schema["type"] != kind {
        faults.push(format!("{path}: {kind}, not {}", schema["type"]));
    }
    if schema["enum"].as_array().is_some_and(|values| !values.contains(value)) {
        faults.push(format!("{path}: {value} is not one of {}", schema["enum"]));
    }
    for key in schema["required"].as_array().into_iter().flatten() {
        if value.get(key.as_str().unwrap()).is_none() {
            faults.push(format!("{path}: {key} is missing"));
        }
    }
    for (key, value) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(key).unwrap_or(&schema["additionalProperties"]) {
            Value::Bool(false) => faults.push(format!("{path}: {key} is unknown")),
            Value::Null => {}
            schema => faults.extend(self::faults(schema, value, &format!("{path}.{key}"))),
        }
    }
    for value in value.as_array().into_iter().flatten() {
        faults.extend(self::faults(&schema["items"], value, path));
    }
    faults
}

/// Returns the form of the client's file, as its documentation describes it.
fn schema(client: McpClient) -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    let env = json!({"type": "object"});
    let servers = |server: Value| json!({"type": "object", "additionalProperties": server});
    match client {
        // `mcpServerSchema` in https://github.com/microsoft/vscode/blob/main/src/vs/workbench/contrib/mcp/common/mcpConfiguration.ts;
        // https://code.visualstudio.com/docs/copilot/reference/mcp-configuration requires the type.
        McpClient::VsCode => {
            let server = json!({
                "type": "object", "additionalProperties": false, "required": ["type", "command"],
                "properties": {
                    "type": {"type": "string", "enum": ["stdio"]}, "command": text, "args": texts, "cwd": text,
                    "env": env, "envFile": text, "dev": {"type": "object"},
                },
            });
            json!({
                "type": "object", "additionalProperties": false,
                "properties": {"servers": servers(server), "inputs": {"type": "array"}},
            })
        }
        // https://cursor.com/docs/mcp, “STDIO server configuration”
        McpClient::Cursor => {
            let server = json!({
                "type": "object", "additionalProperties": false, "required": ["type", "command"],
                "properties": {
                    "type": {"type": "string", "enum": ["stdio"]}, "command": text, "args": texts, "env": env,
                    "envFile": text,
                },
            });
            json!({"type": "object", "properties": {"mcpServers": servers(server)}})
        }
        // https://zed.dev/docs/ai/mcp, “As Custom Servers”
        McpClient::Zed => {
            let server = json!({
                "type": "object", "additionalProperties": false, "required": ["command"],
                "properties": {"command": text, "args": texts, "env": env},
            });
            json!({"type": "object", "properties": {"context_servers": servers(server)}})
        }
        // https://docs.windsurf.com/windsurf/cascade/mcp,
        // https://modelcontextprotocol.io/docs/develop/connect-local-servers,
        // https://junie.jetbrains.com/docs/junie-cli-mcp-configuration.html,
        // https://www.jetbrains.com/help/ai-assistant/mcp.html: the same form
        McpClient::Windsurf
        | McpClient::ClaudeDesktop
        | McpClient::Junie
        | McpClient::Jetbrains
        | McpClient::Other => {
            let server = json!({
                "type": "object", "additionalProperties": false, "required": ["command"],
                "properties": {"command": text, "args": texts, "env": env},
            });
            json!({"type": "object", "properties": {"mcpServers": servers(server)}})
        }
        // https://block.github.io/goose/docs/guides/config-files, “Extensions Configuration”
        McpClient::Goose => {
            let extension = json!({
                "type": "object", "additionalProperties": false,
                "required": ["type", "name", "cmd", "args", "enabled", "timeout"],
                "properties": {
                    "type": {"type": "string", "enum": ["builtin", "stdio"]}, "name": text, "display_name": text,
                    "description": text, "cmd": text, "args": texts, "envs": env, "env_keys": texts,
                    "enabled": {"type": "boolean"}, "bundled": {"type": "boolean"}, "timeout": {"type": "integer"},
                },
            });
            json!({
                "type": "object", "required": ["extensions"],
                "properties": {"extensions": servers(extension)},
            })
        }
    }
}

/// Reads the few forms of YAML that our text uses: nested mappings, and values that are also JSON or plain words.
fn read_yaml(text: &str) -> Value {
    let mut root = json!({});
    let mut path: Vec<String> = Vec::new();
    for line in text.lines() {
        let depth = (line.len() - line.trim_start().len()) / 2;
        let (key, value) = line.trim_start().split_once(':').unwrap();
        path.truncate(depth);
        let parent = path.iter().fold(&mut root, |parent, key| &mut parent[key.as_str()]);
        parent[key] = match value.trim() {
            "" => json!({}),
            value => serde_json::from_str(value).unwrap_or_else(|_| json!(value)),
        };
        path.push(key.to_owned());
    }
    root
}

#[test]
fn each_entry_has_the_documented_form() {
    let desk = Desk::new();
    for client in McpClient::all() {
        let value = match client.entry() {
            Some(_) => {
                desk.connect(client);
                edit::value(&desk.read(client)).unwrap()
            }
            None => {
                let planned = plan(&desk.home.places, Path::new(BINARY), &[client], &desk.here()).unwrap();
                let [pasted] = &planned.pasted[..] else { panic!("{planned:?}") };
                assert!(planned.plan.changes.is_empty() && !pasted.place.is_empty());
                match client {
                    McpClient::Goose => read_yaml(&pasted.text),
                    _ => serde_json::from_str(&pasted.text).unwrap(),
                }
            }
        };
        assert_eq!(faults(&schema(client), &value, client.word()), Vec::<String>::new(), "{value}");
    }
}

#[test]
fn texts_to_paste_start_the_server() {
    let desk = Desk::new();
    let clients = [McpClient::Other, McpClient::Goose, McpClient::Other];
    let here = Here { is_named: true, ..desk.here() };
    let planned = plan(&desk.home.places, Path::new(BINARY), &clients, &here).unwrap();
    let texts: Vec<&str> = planned.pasted.iter().map(|pasted| pasted.text.as_str()).collect();
    let root = desk.home.dir.path().to_str().unwrap();
    insta::assert_snapshot!(texts.join("\n").replace(root, "HOME"), @r#"
    extensions:
      tiro:
        type: stdio
        name: tiro
        description: Searchable memory of conversations and commits
        cmd: "/opt/it's here/tiro"
        args: ["serve", "--project", "HOME/work/my app"]
        envs: {}
        enabled: true
        timeout: 600

    {
      "mcpServers": {
        "tiro": {
          "command": "/opt/it's here/tiro",
          "args": ["serve", "--project", "HOME/work/my app"]
        }
      }
    }
    "#);
}
