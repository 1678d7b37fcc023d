import { parseArgs } from 'node:util'
import { InvalidSettings } from '../settings.ts'
import { StartError } from '../start-error.ts'
import { BackupError } from './manifest.ts'

export function parseFileArgument(command: string): string {
  const [file, ...rest] = parseArgs({ allowPositionals: true }).positionals
  if (file === undefined || rest.length > 0) throw new BackupError(`Name one file: npm run ${command} -- FILE`)
  return file
}

/**
 * Prints only the message of an error that the user can fix, and any other error with its stack. Sets the exit code to
 * 1 after any error.
 */
export async function runCommand(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    const isExpected = [BackupError, InvalidSettings, StartError].some((kind) => error instanceof kind)
    console.error(error instanceof Error && isExpected ? error.message : error)
    process.exitCode = 1
  }
}
