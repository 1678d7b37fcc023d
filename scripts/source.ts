import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface Source {
  path: string
  text: string
}

/** The root of the repository, with a trailing slash. */
export const root = fileURLToPath(new URL('../', import.meta.url))

/** Returns every tracked file, and every untracked file that git does not ignore. */
export const sources = (): Source[] =>
  execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
    .split('\0')
    .filter(Boolean)
    .flatMap((path) => readSource(path))

// A file that was just deleted may still be listed.
function readSource(path: string): Source[] {
  try {
    return [{ path, text: readFileSync(root + path, 'utf8') }]
  } catch {
    return []
  }
}

export const isCode = ({ path }: Source): boolean => /\.tsx?$/.test(path)

/** Prints violations and sets the exit code 1 if there are any. */
export function report(violations: readonly string[]): void {
  for (const violation of violations) console.error(violation)
  if (violations.length > 0) process.exitCode = 1
}
