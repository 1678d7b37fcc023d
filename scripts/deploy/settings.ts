import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { CliError, messageOf } from '@platform/cli/exit'
import { root } from '../source.ts'

/** What an operator sets for a deployment, checked as the configuration reads it, before anything happens. */

export interface Settings {
  /** What is set, as the functions and the configuration get it. */
  set: Readonly<Record<string, string | undefined>>
  /** What is set and means nothing to a deployment. */
  ignored: readonly string[]
}

/** A gateway takes certificates of its own region alone, and says so when half of the deployment is done. Throws `Failure`. */
export function requireCertificateIn(region: string, { domainCertificate }: Settings['set']): void {
  const [, , , where] = domainCertificate?.split(':') ?? []
  if (where === undefined || where === region) return
  const what = `PLAT_DOMAIN_CERTIFICATE: the certificate is in ${where}, and the deployment goes to ${region}.`
  throw new CliError('usage', `${what}\nGet one there (docs/deployment.md#your-own-domain).`)
}

/**
 * Puts what `.env.STAGE` and `.env` set in the project's folder into this process's environment, as the deployer would do; what
 * is there counts more. Throws `Failure` that names the bad settings.
 */
export async function readSettings(stage: string): Promise<Settings> {
  for (const name of [`.env.${stage}`, '.env']) if (existsSync(join(root, name))) process.loadEnvFile(join(root, name))
  // An empty one is none, and stays: without it the deployer would read another value for it from those files.
  const names = Object.keys(process.env).filter((name) => name.startsWith('PLAT_') && process.env[name] !== '')
  try {
    const [{ settingNames, settingsOf, keyFileNames }, { optionsOf, optionNames }] = await Promise.all([
      import('../../infra/settings.ts'),
      import('../../infra/options.ts'),
    ])
    const set = { ...settingsOf(process.env), ...optionsOf(process.env) }
    const known = new Set<string>([...settingNames, ...keyFileNames, ...optionNames])
    return { set, ignored: names.filter((name) => !known.has(name)) }
  } catch (error) {
    throw new CliError('usage', `${messageOf(error)}\ndocs/deployment.md#settings explains them.`, error)
  }
}
