import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { CliError } from '@platform/cli/exit'
import { placesIn, projectDir } from '../state.ts'
import { type LaunchMessage, IpcMessage } from './ipc-messages.ts'

const program = join(import.meta.dirname, '../background.ts')

/**
 * Starts the simulator in a background process. Resolves when it is ready; throws `CliError` with the reason when it
 * fails, after the process has ended.
 */
export async function start(launch: LaunchMessage, onStep: (step: string) => void): Promise<void> {
  await mkdir(launch.folder, { recursive: true, mode: 0o700 })
  const { log } = placesIn(launch.folder)
  // The previous simulator may still write to the log; the owner of the folder truncates it.
  const output = openSync(log, 'a', 0o600)
  const child = spawn(process.execPath, [program, JSON.stringify(launch)], {
    cwd: projectDir,
    detached: true,
    stdio: ['ignore', output, output, 'ipc'],
  })
  closeSync(output)
  const ready = Promise.withResolvers<void>()
  let failure = 'The simulator ended before it was ready.'
  child.on('message', (message) => {
    const news = IpcMessage.parse(message)
    if ('step' in news) onStep(news.step)
    else if ('failure' in news) failure = news.failure
    else ready.resolve()
  })
  const ended = Promise.all([once(child, 'exit'), once(child, 'disconnect')])
  const fail = () => Promise.reject(new CliError('refused', `${failure}\nNo process is left. Log: ${log}`))
  await Promise.race([ready.promise, ended.then(fail)])
  child.disconnect()
  child.unref()
}
