import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { CliError, messageOf } from '@platform/cli/exit'
import { isProtectedStage } from '../../infra/stage-name.ts'
import { root } from '../source.ts'

export interface Settings {
  values: Readonly<Record<string, string | undefined>>
  /** Settings in the environment that a deployment does not use. */
  ignored: readonly string[]
}

/**
 * Throws `CliError` for a certificate of another region, because API Gateway would reject it only late in a deployment.
 */
export function requireCertificateIn(region: string, { domainCertificate }: Settings['values']): void {
  const [, , , certificateRegion] = domainCertificate?.split(':') ?? []
  if (certificateRegion === undefined || certificateRegion === region) return
  const problem = `PLAT_DOMAIN_CERTIFICATE: the certificate is in ${certificateRegion}, but the deployment is in ${region}.`
  throw new CliError('usage', `${problem}\nCreate one there (docs/deployment.md#your-own-domain).`)
}

/** Throws `CliError` for a protected stage, because its removal would fail halfway. */
export function rejectRemovalOfProtected(stage: string): void {
  if (!isProtectedStage(stage, process.env)) return
  const advice = 'See docs/deployment.md#remove for how to remove it anyway.'
  throw new CliError('usage', `The stage ${stage} is protected and cannot be removed by this command. ${advice}`)
}

/**
 * Loads `.env.STAGE` and then `.env` of the project into the environment; existing variables take precedence. Throws a
 * `CliError` that names invalid settings.
 */
export async function readSettings(stage: string): Promise<Settings> {
  for (const name of [`.env.${stage}`, '.env']) if (existsSync(join(root, name))) process.loadEnvFile(join(root, name))
  // Empty variables stay in the environment, so that SST does not read these files for them.
  const names = Object.keys(process.env).filter((name) => name.startsWith('PLAT_') && process.env[name] !== '')
  try {
    const [{ settingNames, settingsOf, keyFileSettingNames }, { optionsOf, optionNames }] = await Promise.all([
      import('../../infra/settings.ts'),
      import('../../infra/options.ts'),
    ])
    const values = { ...settingsOf(process.env), ...optionsOf(process.env) }
    const knownNames = new Set<string>([...settingNames, ...keyFileSettingNames, ...optionNames])
    return { values, ignored: names.filter((name) => !knownNames.has(name)) }
  } catch (error) {
    throw new CliError('usage', `${messageOf(error)}\nSee docs/deployment.md#settings.`, error)
  }
}
