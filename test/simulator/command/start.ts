import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { CliError } from '@platform/cli/exit'
import * as z from 'zod'
import { placesIn, projectDir } from '../state.ts'

export const LaunchMessage = z.object({
  folder: z.string(),
  stage: z.string(),
  port: z.number(),
  functions: z.string().optional(),
})

const IpcMessage = z.union([
  z.object({ step: z.string() }),
  z.object({ isReady: z.literal(true) }),
  z.object({ failure: z.string() }),
])
export type IpcMessage = z.infer<typeof IpcMessage>

const program = join(import.meta.dirname, '../background.ts')

/**
 * Starts the simulator in a background process and waits until it is ready. If the start fails, waits until the process
 * has ended and throws `CliError` with the reason.
 */
export async function start(launch: z.infer<typeof LaunchMessage>, onStep: (step: string) => void): Promise<void> {
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
  child.on('message', (content) => {
    const message = IpcMessage.parse(content)
    if ('step' in message) onStep(message.step)
    else if ('failure' in message) failure = message.failure
    else ready.resolve()
  })
  const endOfChild = Promise.all([once(child, 'exit'), once(child, 'disconnect')])
  const fail = () => Promise.reject(new CliError('refused', `${failure}\nThe processes have ended. Log: ${log}`))
  await Promise.race([ready.promise, endOfChild.then(fail)])
  child.disconnect()
  child.unref()
}
