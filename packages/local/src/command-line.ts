import { resolve } from 'node:path'
import { parseArgs, type ParseArgsConfig } from 'node:util'

/** Resolves a path in a command line: npm runs scripts in the project folder, and INIT_CWD is the caller's folder. */
export const resolveFromCaller = (path: string): string => resolve(process.env['INIT_CWD'] ?? '.', path)

/** If the options include `--help`, prints the usage and exits with 0. */
export function exitOnHelp(usage: string): void {
  if (!process.argv.slice(2).includes('--help')) return
  console.log(usage)
  process.exit(0)
}

/** Exits with 2, the exit code for an invalid command line. */
export function exitWithUsage(message: string, usage: string): never {
  console.error(`${message}\n\n${usage}`)
  process.exit(2)
}

/** Parses the command line of an npm script. Exits after `--help`, and if an option is invalid. */
export function parseCommandLine<Config extends ParseArgsConfig>(
  usage: string,
  config: Config,
): ReturnType<typeof parseArgs<Config>> {
  exitOnHelp(usage)
  try {
    return parseArgs(config)
  } catch (error) {
    // Node.js adds advice about positional arguments.
    const [problem = ''] = error instanceof Error ? error.message.split(/\.\s/) : []
    return exitWithUsage(`${problem}.`, usage)
  }
}
