import { CliError } from './exit.ts'

let named: string | undefined

/** Sets the context of the option `--context`. */
export const setContext = (name: string): void => {
  named = contextName(name)
}

/** The context of `--context`, else of PLAT_CONTEXT. */
export function requestedContext(): string | undefined {
  const { PLAT_CONTEXT: fromEnvironment } = process.env
  return named ?? (fromEnvironment ? contextName(fromEnvironment) : undefined)
}

/** PLAT_TOKEN. An option takes precedence over the environment, so with `--context` the token is not used. */
export const environmentToken = (): string | undefined => unlessNamed(process.env['PLAT_TOKEN'])

/** PLAT_SERVER, unless `--context` is set. */
export const environmentServer = (): string | undefined => unlessNamed(process.env['PLAT_SERVER'])

const unlessNamed = (value: string | undefined): string | undefined =>
  named === undefined ? value || undefined : undefined

// A file name, and a word in shell completion.
export const isContextName = (text: string): boolean => /^[A-Za-z0-9][\w.-]{0,62}$/.test(text)

/** A valid name of a context. Throws `CliError`. */
export function contextName(text: string): string {
  if (isContextName(text)) return text
  throw new CliError(
    'usage',
    `${JSON.stringify(text)} is not a name of a context. Use at most 63 letters, digits, ".", "_" and "-".`,
  )
}

export const defaultContext = 'default'

/** The command to sign in to the context of this command. */
export function loginCommand(): string {
  const name = requestedContext()
  return name === undefined ? 'plat login' : `plat login --context ${name}`
}
