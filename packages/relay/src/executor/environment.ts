import type { Task } from './executor.ts'

/** Returns the environment variables of a script that do not depend on its user. */
export function scriptVariables({ jobId, nodeName }: Task): Record<string, string> {
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    LANG: 'C.UTF-8',
    PLAT_JOB_ID: jobId,
    PLAT_NODE_NAME: nodeName,
  }
}

/** The file mode creation mask of a script. */
export const scriptUmask = '022'

/**
 * Returns the command that runs a script, without the path of the script. The relay reads the `#!` line itself, so that
 * a script also runs from a file system that is mounted `noexec`, and an error names the interpreter.
 */
export function interpreterOf(script: string): string[] {
  const [, program, argument] = /^#![ \t]*([^ \t\n]+)[ \t]*([^\n]*)/.exec(script) ?? []
  if (program === undefined) return ['sh']
  const trimmedArgument = argument?.replace(/[ \t]+$/, '')
  return trimmedArgument ? [program, trimmedArgument] : [program]
}

/** Returns a problem in the text of a failed script that may have caused the failure, if there is one. */
export function findTextProblem(script: string): string | undefined {
  if (script.startsWith('\uFEFF')) return 'The script begins with a byte order mark, which a shell reads as a command.'
  if (script.includes('\r\n')) return 'Lines of the script end with CR LF, which may be the cause. Convert them to LF.'
  if (/^\s+#!/.test(script)) return 'The "#!" line is not the first line, so the script ran with sh.'
  return undefined
}
