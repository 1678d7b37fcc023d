import { exec } from 'node:child_process'
import { promisify } from 'node:util'
import { freePorts } from '../../support/free-ports.ts'
import { isLong } from '../../support/long.ts'
import { options, PlatformProcess } from '../../support/platform.ts'
import type { Options } from './platform.ts'
import { completeSetup } from './setup.ts'
import { readTarget, type Target } from './target.ts'

/** Limits for parallel tests from one address. Failed sign-ins stay limited. */
const settings = {
  PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE: '30',
  ...Object.fromEntries(
    ['SIGN_IN_ADDRESS', 'SIGN_IN_STEP', 'REFRESH', 'ENROLL', 'BATCH', 'API'].map((name) => [
      `PLAT_LIMIT_${name}_PER_MINUTE`,
      '60000',
    ]),
  ),
  PLAT_LIMIT_API_BURST: '5000',
  ...(!isLong && { PLAT_FUNCTION_THREADS: '1' }),
}

/** Prepares the platform and sends its `Options` to the parent. Exits with the parent. */
const stack = new AsyncDisposableStack()
process.on('disconnect', () => void stack.disposeAsync().finally(() => process.exit()))
const target = readTarget(process.env)
const prepared = target === undefined ? startPlatform() : setUpTarget(target)
process.send?.(await prepared.catch((error: unknown) => ({ error: String(error) })))

async function startPlatform(): Promise<Options> {
  const receivers = (await freePorts(2)).map((port) => `127.0.0.1:${port}`)
  const platform = stack.use(await PlatformProcess.start({ ...settings, PLAT_OUTBOUND_ALLOW: receivers.join() }))
  const started = { ...options, baseUrl: platform.url, receivers }
  await completeSetup(started, (command) => platform.command(command))
  return started
}

async function setUpTarget({ initialAdminToken, isLocal, tokenCommand, ...options }: Target): Promise<Options> {
  await completeSetup(options, async (command) => {
    if (initialAdminToken !== undefined) return initialAdminToken
    if (!isLocal) throw new Error('Set PLAT_INITIAL_ADMIN_TOKEN: the platform is on another machine.')
    return (await promisify(exec)(tokenCommand ?? command)).stdout
  })
  return options
}
