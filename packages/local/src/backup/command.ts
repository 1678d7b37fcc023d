import { InvalidSettings } from '../settings.ts'
import { StartError } from '../start-error.ts'
import { BackupError } from './manifest.ts'

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
