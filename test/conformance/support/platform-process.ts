import { exec } from 'node:child_process'
import { promisify } from 'node:util'
import { freePorts } from '../../support/free-ports.ts'
import { isLong } from '../../support/long.ts'
import { options as credentials, PlatformProcess } from '../../support/platform.ts'
import { endWithParent } from '../../support/program.ts'
import type { Options } from './platform.ts'
import { completeSetup } from './setup.ts'

const settings = {
  ...Object.fromEntries(
    ['SIGN_IN_USER', 'SIGN_IN_ADDRESS', 'SIGN_INS', 'SIGN_IN_STEP', 'REFRESH', 'ENROLL', 'BATCH', 'API'].map((name) => [
      `PLAT_LIMIT_${name}_PER_MINUTE`,
      '60000',
    ]),
  ),
  PLAT_LIMIT_API_BURST: '5000',
  ...(!isLong && { PLAT_FUNCTION_THREADS: '1' }),
}

const documentedPassword = 'correct horse battery'
const loopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

const resources = new AsyncDisposableStack()
endWithParent(() => resources.disposeAsync())
const url = process.env['PLAT_CONFORMANCE_URL']
const prepared = url === undefined ? startPlatform() : setUpPlatformAt(url)
process.send?.(await prepared.catch((error: unknown) => ({ error: String(error) })))

async function startPlatform(): Promise<Options> {
  const receivers = (await freePorts(2)).map((port) => `127.0.0.1:${port}`)
  const platform = resources.use(await PlatformProcess.start({ ...settings, PLAT_WEBHOOK_ALLOW: receivers.join() }))
  const options = { ...credentials, baseUrl: platform.url, receivers }
  await completeSetup(options, (command) => platform.command(command))
  return options
}

async function setUpPlatformAt(url: string): Promise<Options> {
  const { env } = process
  const isLocal = loopback.test(new URL(url).hostname)
  const password = env['PLAT_CONFORMANCE_PASSWORD'] ?? (isLocal ? documentedPassword : undefined)
  if (password === undefined) throw new Error('Set PLAT_CONFORMANCE_PASSWORD: the platform is on another machine.')
  const allowedTargets = (env['PLAT_WEBHOOK_ALLOW'] ?? '').split(',').map((target) => target.trim())
  const options = {
    baseUrl: url.replace(/\/+$/, ''),
    username: env['PLAT_CONFORMANCE_USERNAME'] ?? 'admin',
    password,
    receivers: isLocal ? allowedTargets.filter((target) => loopback.test(target.replace(/:\d+$/, ''))) : [],
  }
  await completeSetup(options, async (command) => {
    const token = env['PLAT_INITIAL_ADMIN_TOKEN']
    if (token !== undefined) return token
    if (!isLocal) throw new Error('Set PLAT_INITIAL_ADMIN_TOKEN: the platform is on another machine.')
    return (await promisify(exec)(env['PLAT_CONFORMANCE_TOKEN_COMMAND'] ?? command)).stdout
  })
  return options
}
