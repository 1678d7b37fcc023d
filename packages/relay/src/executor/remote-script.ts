import type { Task } from './executor.ts'

/**
 * Shell command that reads a script from standard input and runs it in a new folder and process group. It passes on the
 * output and exit code. When standard input closes, because of a stop or a lost connection, it ends the process group.
 */
export function remoteCommand({ jobId, nodeName, script }: Task): string {
  const run = script.startsWith('#!') ? '"$folder/script"' : 'sh "$folder/script"'
  const lines = [
    'umask 077',
    'folder=$(mktemp -d "${TMPDIR:-/tmp}/platform-relay.XXXXXX") || exit 126',
    `head -c ${Buffer.byteLength(script)} >"$folder/script"`,
    // If the connection breaks, a partly received script must not run.
    `[ "$(wc -c <"$folder/script")" -eq ${Buffer.byteLength(script)} ] || { rm -rf "$folder"; exit 126; }`,
    'chmod 700 "$folder/script"; mkdir "$folder/work"; cd "$folder/work" || exit 126',
    `export PLAT_JOB_ID=${quote(jobId)} PLAT_NODE_NAME=${quote(nodeName)}`,
    'exec 3<&0',
    `$(command -v setsid) ${run} </dev/null 3<&- &`,
    'main=$!',
    'hit() { kill -s "$1" -- "-$main" 2>/dev/null || kill -s "$1" "$main" 2>/dev/null; }',
    '{ read -r _; hit TERM; sleep 5; hit KILL; } <&3 >/dev/null 2>&1 &',
    'watcher=$!',
    'wait "$main"; code=$?',
    'kill "$watcher" 2>/dev/null; kill -s KILL -- "-$main" 2>/dev/null',
    'cd /; rm -rf "$folder"; exit "$code"',
  ]
  return `exec sh -c ${quote(lines.join('\n'))}`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
