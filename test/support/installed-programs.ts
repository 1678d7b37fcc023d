import { execFile } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

function isInstalled(program: string): boolean {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return folders.some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** The reason for skipping tests that need these programs; empty if all are installed. */
export function missingPrograms(...programs: string[]): string {
  const lacking = programs.filter((program) => !isInstalled(program))
  return lacking.length === 0 ? '' : ` (skipped: this machine has no ${lacking.join(', ')})`
}

export async function outputOf(program: string, ...args: string[]): Promise<string> {
  const { stdout } = await execute(program, args, { maxBuffer: 16 * 1024 * 1024 })
  return stdout
}
