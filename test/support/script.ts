import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { waitFor } from './wait-for.ts'

const run = promisify(execFile)

export const waitForFileScript = (file: string): string => `until [ -e '${file}' ]; do sleep 0.05; done`

export async function readWrittenLines(file: string): Promise<string[]> {
  await waitFor(`${file} is written`, async () => existsSync(file))
  return (await readFile(file, 'utf8')).trim().split('\n')
}

/** A zombie does not count as running. */
export async function isRunning(processId: string): Promise<boolean> {
  const { stdout } = await run('ps', ['-o', 'stat=', '-p', processId]).catch(() => ({ stdout: '' }))
  return stdout.trim() !== '' && !stdout.trim().startsWith('Z')
}
