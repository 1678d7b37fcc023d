import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { exitCodes } from '../exit-codes.ts'
import { info, messageOf, warn } from '../log.ts'
import { type Program, Programs } from './programs.ts'

/** Whether another relay process has started this relay. */
export const isSupervised = process.env['PLAT_RELAY_SUPERVISED'] === '1'
/** A new program has to complete a heartbeat within this time. */
const trialLimitMs = 1000 * (Number(process.env['PLAT_RELAY_TRIAL_SECONDS']) || 180)

const stopLimitMs = 10_000
// A relay whose supervisor was killed keeps the lock until it has ended.
const lockWaitMs = 15_000

/**
 * Runs the newest program, and starts the next one after an update or a failed trial. Returns the exit code of the last
 * program. `runOwn` runs the program of this process.
 */
export async function supervise(
  stateFolder: string,
  runOwn: () => Promise<number>,
  signal: AbortSignal,
): Promise<number> {
  const programs = new Programs(stateFolder)
  const startedMs = performance.now()
  for (;;) {
    const nextProgram = programs.next()
    const code = nextProgram ? await runProgram(programs, nextProgram, signal) : await runOwn()
    if (signal.aborted) return code
    const { candidate } = programs
    const isOpenTrial = nextProgram?.isTrial === true && candidate?.sha256 === nextProgram.sha256
    const isLocked =
      code === exitCodes.stateInUse && nextProgram !== undefined && performance.now() - startedMs < lockWaitMs
    if (isLocked) await sleep(1000)
    try {
      if (isLocked && isOpenTrial) programs.try({ isRepeated: true })
      else if (isOpenTrial && candidate?.state === 'trying') programs.pause(`it ended with exit code ${code}`)
    } catch (error) {
      warn(`The end of the trial of relay ${nextProgram?.version} could not be recorded: ${messageOf(error)}.`)
    }
    if (!isLocked && !isOpenTrial && code !== exitCodes.replaced) return code
  }
}

async function runProgram(
  programs: Programs,
  nextProgram: Program & { isTrial: boolean },
  signal: AbortSignal,
): Promise<number> {
  info(nextProgram.isTrial ? `Trying relay ${nextProgram.version}.` : `Starting relay ${nextProgram.version}.`)
  const child = spawn(process.execPath, [...process.execArgv, programs.path(nextProgram), ...process.argv.slice(2)], {
    env: { ...process.env, PLAT_RELAY_SUPERVISED: '1' },
    // Ctrl-C signals only this process, which then ends the child. If this process is killed, the closed IPC channel
    // ends the child.
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const stop = () => endChild(child)
  signal.addEventListener('abort', stop)
  const timer = nextProgram.isTrial ? setInterval(() => endTrial(programs, child), trialLimitMs) : undefined
  try {
    await once(child, 'exit')
    return child.exitCode ?? 128 + constants.signals[child.signalCode!]
  } catch (error) {
    warn(`Relay ${nextProgram.version} could not be started: ${String(error)}`)
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
    // The program may have completed a heartbeat without being able to record it.
    return warn(`The trial of a relay continues, because its end cannot be recorded: ${messageOf(error)}.`)
  }
  endChild(child)
}

function endChild(child: ChildProcess): void {
  child.kill('SIGTERM')
  setTimeout(() => child.kill('SIGKILL'), stopLimitMs).unref()
}

/** Makes this relay stop when its supervisor ends, if it has one. */
export function followSupervisor(): void {
  if (!isSupervised) return
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  process.channel?.unref()
}
