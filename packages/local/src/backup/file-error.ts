import { BackupError } from './manifest.ts'

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EEXIST: 'a file or a broken link is where a folder must be',
  ENOTDIR: 'a file or a broken link is where a folder must be',
  EISDIR: 'a folder is where a file must be',
}

export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error ? String(error.code) : undefined

/** Whether the operating system raised the error. Its codes begin with E, and those of Node with ERR_. */
export const isFileError = (error: unknown): boolean => /^E(?!RR_)/.test(codeOf(error) ?? '')

/** Converts a file error to a `BackupError` with the path and the reason. Returns other errors unchanged. */
export function explainFileError(error: unknown, fallbackPath: string): unknown {
  if (!(error instanceof Error) || !isFileError(error)) return error
  const code = codeOf(error) ?? ''
  const path = 'path' in error ? String(error.path) : fallbackPath
  const missingProblem = 'syscall' in error && error.syscall === 'mkdir' ? 'cannot be created' : 'does not exist'
  const problem = code === 'ENOENT' ? missingProblem : `cannot be used: ${reasons[code] ?? error.message}`
  return new BackupError(`${path} ${problem}.`, { cause: error })
}
