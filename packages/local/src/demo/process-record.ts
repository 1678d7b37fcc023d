import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/** Process id and start time, because the system reuses ids. */
interface ProcessRecord {
  pid: number
  startedAt: string
}

/** A shell command that writes the record of its process to the file `$0`, before it becomes the program `$@`. */
export const recordingCommand = '{ cat "/proc/$$/stat" 2>/dev/null || ps -o pid=,lstart= -p "$$"; } >"$0" && exec "$@"'

const startTimeIndex = 19

/** Reads a line of `/proc/…/stat`, of `ps -o pid=,lstart=` or of `recordOwnProcess`. */
function parseRecord(line: string): ProcessRecord | undefined {
  const pid = Number.parseInt(line, 10)
  // The name of the program, in parentheses, may contain spaces.
  const startedAt = line.includes(')')
    ? line.slice(line.lastIndexOf(')') + 2).split(' ')[startTimeIndex]
    : line.trim().replace(/^\d+\s+/, '')
  return pid > 1 && startedAt ? { pid, startedAt } : undefined
}

function currentRecord(pid: number): ProcessRecord | undefined {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // Without an init process, ended orphans remain as zombies.
    return line.includes(') Z ') ? undefined : parseRecord(line)
  } catch {
    return process.platform === 'linux' ? undefined : recordOfPs(pid)
  }
}

function recordOfPs(pid: number): ProcessRecord | undefined {
  try {
    return parseRecord(execFileSync('ps', ['-o', 'pid=,lstart=', '-p', String(pid)], { encoding: 'utf8' }))
  } catch {
    return undefined
  }
}

export function recordOwnProcess(file: string): void {
  const record = currentRecord(process.pid)
  writeFileSync(file, `${record?.pid} ${record?.startedAt}\n`, { mode: 0o600 })
}

function readRecord(file: string): ProcessRecord | undefined {
  try {
    return parseRecord(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    // The process has just ended.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

/**
 * Sends SIGTERM to the recorded process if it runs, and SIGKILL if it still runs after `graceMs`. Rejects if the
 * process does not end within 5 seconds after SIGKILL.
 */
export async function stopRecorded(file: string, graceMs: number): Promise<void> {
  const record = readRecord(file)
  if (record === undefined) return
  const isRunning = () => currentRecord(record.pid)?.startedAt === record.startedAt
  for (const [signal, limitMs] of [['SIGTERM', graceMs] as const, ['SIGKILL', 5000] as const]) {
    if (!isRunning()) return
    sendSignal(record.pid, signal)
    for (const endMs = performance.now() + limitMs; performance.now() < endMs && isRunning();) await delay(50)
  }
  if (isRunning()) throw new Error(`Process ${record.pid} does not end. End it, and try again.`)
}
