import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Failure, messageOf } from '@platform/cli/exit'
import { root } from '../source.ts'

/** What an operator sets for a deployment, checked as the configuration reads it, before anything happens. */

export interface Settings {
  /** What is set, as the functions and the configuration get it. */
  set: Readonly<Record<string, string | undefined>>
  /** What is set and means nothing to a deployment. */
  ignored: readonly string[]
}

/**
 * Puts what `.env.STAGE` and `.env` set in the project's folder into this process's environment, as the deployer would do; what
 * is there counts more. Throws `Failure` that names the bad settings.
 */
export async function readSettings(stage: string): Promise<Settings> {
  for (const name of [`.env.${stage}`, '.env']) if (existsSync(join(root, name))) process.loadEnvFile(join(root, name))
  // An empty one is none. What reads settings reads those of this process as it is loaded.
  const names = Object.keys(process.env).filter((name) => name.startsWith('PLAT_'))
  for (const name of names) if (process.env[name] === '') delete process.env[name]
  try {
    const [{ settingNames, settingsOf, keyFileNames }, { optionsOf, optionNames }] = await Promise.all([
      import('../../infra/settings.ts'),
      import('../../infra/options.ts'),
    ])
    const set = { ...settingsOf(process.env), ...optionsOf(process.env) }
    const known = new Set<string>([...settingNames, ...keyFileNames, ...optionNames])
    return { set, ignored: names.filter((name) => process.env[name] !== undefined && !known.has(name)) }
  } catch (error) {
    throw new Failure('usage', `${messageOf(error)}\ndocs/deployment.md#settings explains them.`, error)
  }
}
