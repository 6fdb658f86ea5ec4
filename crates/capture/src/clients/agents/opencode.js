// Written by `tiro init`, which replaces this file; `tiro init --remove` deletes it.
import { spawnSync } from "node:child_process"

const program = PROGRAM

// Runs the hook, which takes a tenth of a second, and returns what it says. Whatever fails, opencode goes on.
function hook(payload) {
  try {
    const input = JSON.stringify(payload)
    const { stdout } = spawnSync(program, ["hook", "opencode"], { input, timeout: 3000, encoding: "utf8" })
    return stdout ? JSON.parse(stdout).hookSpecificOutput?.additionalContext : undefined
  } catch {
    return undefined
  }
}

export const Tiro = async ({ directory }) => {
  // Sessions of sub-agents, and what each session was told at its start.
  const agents = new Set()
  const told = new Map()
  const tell = (session, name, source) =>
    hook({
      hook_event_name: name,
      session_id: session,
      cwd: directory,
      source,
      agent_id: agents.has(session) ? session : undefined,
    })
  return {
    event: async ({ event }) => {
      const session = event.properties?.sessionID
      if (!session) return
      if (event.type === "session.created" && event.properties.info?.parentID) agents.add(session)
      if (event.type === "session.idle") tell(session, "Stop")
      if (event.type === "session.compacted") told.set(session, tell(session, "SessionStart", "compact"))
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      if (!sessionID) return
      if (!told.has(sessionID)) told.set(sessionID, tell(sessionID, "SessionStart", "startup"))
      if (told.get(sessionID)) system.push(told.get(sessionID))
    },
  }
}
