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
 * Starts a rehearsal in a process of its own, which stays when this one ends. Resolves when it is ready; throws `Failure` with
 * its reason when it is not, and then it has ended.
 */
export async function start(launch: LaunchMessage, onStep: (step: string) => void): Promise<void> {
  await mkdir(launch.folder, { recursive: true, mode: 0o700 })
  const { log } = placesIn(launch.folder)
  // Another one may be writing there still; whoever gets the folder begins the log anew.
  const output = openSync(log, 'a', 0o600)
  const child = spawn(process.execPath, [program, JSON.stringify(launch)], {
    cwd: projectDir,
    detached: true,
    stdio: ['ignore', output, output, 'ipc'],
  })
  closeSync(output)
  const ready = Promise.withResolvers<void>()
  let failure = 'The rehearsal ended before it was ready.'
  child.on('message', (message) => {
    const news = IpcMessage.parse(message)
    if ('step' in news) onStep(news.step)
    else if ('failure' in news) failure = news.failure
    else ready.resolve()
  })
  const ended = Promise.all([once(child, 'exit'), once(child, 'disconnect')])
  const fail = () => Promise.reject(new CliError('refused', `${failure}\nNothing of it runs. Its log: ${log}`))
  await Promise.race([ready.promise, ended.then(fail)])
  child.disconnect()
  child.unref()
}
