import type { settingNames } from '../../infra/settings.ts'
import { freePorts } from '../support/free-ports.ts'

/** Settings that differ from the defaults of the platform. A conformance run does not reach these rate limits. */
const defaults: Partial<Record<(typeof settingNames)[number], string>> = {
  PLAT_LOG_LEVEL: 'warn',
  PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE: '30',
  PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE: '600',
  PLAT_LIMIT_SIGN_INS_PER_MINUTE: '600',
  PLAT_LIMIT_SETUP_PER_MINUTE: '600',
  PLAT_LIMIT_REFRESH_PER_MINUTE: '600',
  PLAT_LIMIT_ENROLL_PER_MINUTE: '600',
  PLAT_LIMIT_BATCH_PER_MINUTE: '600',
  PLAT_LIMIT_API_PER_MINUTE: '60000',
  PLAT_LIMIT_API_BURST: '5000',
}

const receiverCount = 3

/** An empty setting in the environment selects the platform's default. */
export async function operatorSettings(environment: NodeJS.ProcessEnv): Promise<Record<string, string>> {
  const given = Object.entries(environment).filter((entry): entry is [string, string] => entry[0].startsWith('PLAT_'))
  const receivers = (await freePorts(receiverCount)).map((port) => `127.0.0.1:${port}`)
  return { ...defaults, PLAT_WEBHOOK_ALLOW: receivers.join(), ...Object.fromEntries(given) }
}
