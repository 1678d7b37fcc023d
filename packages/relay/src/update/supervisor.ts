import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { exitCodes } from '../exit-codes.ts'
import { info, messageOf, warn } from '../log.ts'
import { type Program, Programs } from './programs.ts'

/** Set for a relay that another relay process has started. */
export const isSupervised = process.env['PLAT_RELAY_SUPERVISED'] === '1'
/** A new program has to complete a heartbeat within this time. */
const trialLimitMs = 1000 * (Number(process.env['PLAT_RELAY_TRIAL_SECONDS']) || 180)

const stopLimitMs = 10_000
// A relay whose supervisor was killed needs some time to end.
const lockWaitMs = 15_000

/**
 * Runs the newest program until the signal aborts or the program ends, and replaces it after an update. `runOwn` runs
 * the program of this process. Both return an exit code.
 */
export async function supervise(
  stateFolder: string,
  runOwn: () => Promise<number>,
  signal: AbortSignal,
): Promise<number> {
  const programs = new Programs(stateFolder)
  const startedMs = performance.now()
  for (;;) {
    const next = programs.next()
    const code = next ? await runProgram(programs, next, signal) : await runOwn()
    if (signal.aborted) return code
    const { candidate } = programs
    const isOpenTrial = next?.isTrial === true && candidate?.sha256 === next.sha256
    const isLocked = code === exitCodes.stateInUse && next !== undefined && performance.now() - startedMs < lockWaitMs
    if (isLocked) await sleep(1000)
    try {
      if (isLocked && isOpenTrial) programs.try({ isRepeated: true })
      else if (isOpenTrial && candidate?.state === 'trying') programs.pause(`it ended with exit code ${code}`)
    } catch (error) {
      warn(`The end of the trial of relay ${next?.version} could not be recorded: ${messageOf(error)}.`)
    }
    if (!isLocked && !isOpenTrial && code !== exitCodes.replaced) return code
  }
}

async function runProgram(
  programs: Programs,
  next: Program & { isTrial: boolean },
  signal: AbortSignal,
): Promise<number> {
  info(next.isTrial ? `Trying relay ${next.version}.` : `Starting relay ${next.version}.`)
  const child = spawn(process.execPath, [...process.execArgv, programs.path(next), ...process.argv.slice(2)], {
    env: { ...process.env, PLAT_RELAY_SUPERVISED: '1' },
    // Ctrl-C signals only this process, which passes it on. The channel closes if this process is killed.
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const stop = () => end(child)
  signal.addEventListener('abort', stop)
  const timer = next.isTrial ? setInterval(() => endTrial(programs, child), trialLimitMs) : undefined
  try {
    await once(child, 'exit')
    return child.exitCode ?? 128 + constants.signals[child.signalCode!]
  } catch (error) {
    warn(`Relay ${next.version} could not be started: ${String(error)}`)
    return exitCodes.failed
  } finally {
    clearInterval(timer)
    signal.removeEventListener('abort', stop)
  }
}

function endTrial(programs: Programs, child: ChildProcess): void {
  if (programs.candidate?.state !== 'trying') return
  try {
    programs.pause(`it completed no heartbeat within ${trialLimitMs / 1000} s`)
  } catch (error) {
    // It may work, and only be unable to record that.
    return warn(`The trial of a relay continues, because its end cannot be recorded: ${messageOf(error)}.`)
  }
  end(child)
}

function end(child: ChildProcess): void {
  child.kill('SIGTERM')
  setTimeout(() => child.kill('SIGKILL'), stopLimitMs).unref()
}

/** Ends a supervised relay when its supervisor has ended. */
export function followSupervisor(): void {
  if (!isSupervised) return
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  process.channel?.unref()
}
