import { interpreterOf, scriptUmask, scriptVariables } from './environment.ts'
import { endedProcessesLine, graceMs, settleMs, type Task } from './executor.ts'

const pollSeconds = 0.05
const pollsPerSecond = 1 / pollSeconds

/**
 * Returns a shell command that reads a script from standard input and runs it in a new folder and process group. It
 * passes on the output and exit code. When standard input closes, because of a stop or a lost connection, it ends the
 * process group.
 */
export function remoteCommand(task: Task, parent?: string): string {
  const sizeBytes = Buffer.byteLength(task.script)
  const words = Object.entries(scriptVariables(task)).map(([name, value]) => `${name}=${value}`)
  const command = [...words, ...interpreterOf(task.script)].map(quote).join(' ')
  const lines = [
    'umask 077',
    `folder=$(mktemp -d ${parent ? quote(parent) : '"${TMPDIR:-/tmp}"'}/platform-relay.XXXXXX) || exit 126`,
    // The script may have made its files read-only.
    'clear() { cd /; chmod -R u+rwX "$folder" 2>/dev/null; rm -rf "$folder"; }',
    `head -c ${sizeBytes} >"$folder/script"`,
    // If the connection breaks, a partly received script must not run.
    `[ "$(wc -c <"$folder/script")" -eq ${sizeBytes} ] || { clear; exit 126; }`,
    'chmod 700 "$folder/script"; mkdir "$folder/work"; cd "$folder/work" || exit 126',
    `umask ${scriptUmask}; user=$(id -un)`,
    'exec 3<&0',
    `$(command -v setsid) env -i "HOME=$HOME" "USER=$user" "LOGNAME=$user" ${command} "$folder/script" </dev/null 3<&- &`,
    'main=$!',
    'hit() { kill -s "$1" -- "-$main" 2>/dev/null || kill -s "$1" "$main" 2>/dev/null; }',
    // Counts the running processes of the group; see `countMembers`.
    'left() {',
    '  n=0',
    '  for f in /proc/[0-9]*/stat; do',
    '    { read -r line <"$f"; } 2>/dev/null || continue',
    '    set -- ${line##*) }',
    '    [ "$1" = Z ] && continue',
    '    if [ "$3" = "$main" ] || [ "$f" = "/proc/$main/stat" ]; then n=$((n + 1)); fi',
    '  done',
    '  if [ ! -e /proc/self/stat ] && kill -s 0 -- "-$main" 2>/dev/null; then n=1; fi',
    '  [ "$n" -gt 0 ]',
    '}',
    `settle() { t=0; while [ "$t" -lt "$1" ] && left; do`,
    `  if sleep ${pollSeconds} 2>/dev/null; then t=$((t + 1)); else sleep 1; t=$((t + ${pollsPerSecond})); fi`,
    'done; }',
    `{ read -r _; : >"$folder/stopped"; hit TERM; settle ${(graceMs / 1000) * pollsPerSecond}; left && hit KILL; } <&3 >/dev/null 2>&1 &`,
    'watcher=$!',
    'wait "$main"; code=$?',
    'if [ -e "$folder/stopped" ]; then wait "$watcher"; else',
    '  kill "$watcher" 2>/dev/null',
    `  settle ${(settleMs / 1000) * pollsPerSecond}`,
    // The line starts with a newline, because the script's output might not end with one.
    `  if left; then hit KILL; printf '\\n%s\\n' "${endedProcessesLine('$n')}" >&2; fi`,
    'fi',
    'clear; exit "$code"',
  ]
  return `exec sh -c ${quote(lines.join('\n'))}`
}

export function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
