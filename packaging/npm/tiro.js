#!/usr/bin/env node
// Starts the program, which is in the package for this platform. npm installs that package as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const path = require("node:path");
const { name, version, homepage, optionalDependencies } = require("../package.json");

const platform = `${process.platform}-${process.arch}`;
const needed = `${name}-${platform}`;

function fail(message, hint) {
  process.stderr.write(`error: ${message}\nhint: ${hint}\n`);
  process.exit(1);
}

// Returns the path of the program.
function find() {
  const platforms = Object.keys(optionalDependencies).map((each) => each.slice(name.length + 1));
  if (!(needed in optionalDependencies)) {
    fail(
      `${name} ${version} has no program for ${platform}, only for ${platforms.join(", ")}`,
      `build it from its source: ${homepage}`,
    );
  }
  try {
    const folder = path.dirname(require.resolve(`${needed}/package.json`));
    return path.join(folder, "bin", process.platform === "win32" ? "tiro.exe" : "tiro");
  } catch {
    fail(
      `the package ${needed}, which contains the program, is not installed. npm leaves it out if it is told to omit ` +
        "optional dependencies, and a node_modules folder from another system contains another one",
      `npm install --include=optional ${name}@${version}; add -g if you installed it globally. ` +
        "`npm config get omit` shows what npm leaves out",
    );
  }
}

// Ends as the program did. A signal that Node ignores does not end this process, so it gets the code of a shell.
function end(code, signal) {
  if (signal) {
    process.exitCode = 128 + constants.signals[signal];
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exitCode = code;
  }
}

const program = find();
let child;
// Before the program starts: a signal that ended this process alone would leave the program behind.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => fail(`cannot start ${program}: ${error.message}`, `install ${name} again`));
child.on("exit", end);
