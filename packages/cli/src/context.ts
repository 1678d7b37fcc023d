import { CliError } from './exit.ts'

let optionContextName: string | undefined

export const setContext = (name: string): void => {
  optionContextName = parseContextName(name)
}

/** Returns the context name from `--context`, or else from PLAT_CONTEXT. */
export function requestedContextName(): string | undefined {
  const { PLAT_CONTEXT: fromEnvironment } = process.env
  return optionContextName ?? (fromEnvironment ? parseContextName(fromEnvironment) : undefined)
}

/** Returns the value of PLAT_TOKEN, unless `--context` is set, which takes precedence. */
export const environmentToken = (): string | undefined => unlessContextOption(process.env['PLAT_TOKEN'])

/** Returns the value of PLAT_SERVER, unless `--context` is set. */
export const environmentServer = (): string | undefined => unlessContextOption(process.env['PLAT_SERVER'])

const unlessContextOption = (value: string | undefined): string | undefined =>
  optionContextName === undefined ? value || undefined : undefined

// The name is also a file name, and a word in shell completion.
export const isContextName = (text: string): boolean => /^[A-Za-z0-9][\w.-]{0,62}$/.test(text)

/** Returns the name of a context. Throws `CliError` if it is invalid. */
export function parseContextName(text: string): string {
  if (isContextName(text)) return text
  throw new CliError(
    'usage',
    `${JSON.stringify(text)} is not a name of a context. Use at most 63 letters, digits, ".", "_" and "-".`,
  )
}

export const defaultContext = 'default'

/** Returns the command to sign in to the requested context or, without one, to the current context. */
export function loginCommand(): string {
  const name = requestedContextName()
  return name === undefined ? 'plat login' : `plat login --context ${name}`
}
