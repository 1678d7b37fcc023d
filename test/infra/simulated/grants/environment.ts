import { once } from 'node:events'
import { createServer } from 'node:http'
import { inject } from 'vitest'
import { expectStatus } from '../../../conformance/support/answer.ts'
import { connect, type Platform } from '../../../conformance/support/platform.ts'
import { completeSetupPath, setupBody } from '../../../conformance/support/setup.ts'
import { type Simulator, startSimulator } from '../../../simulator/simulator.ts'
import { freePorts } from '../../../support/free-ports.ts'
import { type IdentityProviders, startIdentityProviders } from './identity-providers.ts'

export interface Environment extends AsyncDisposable {
  simulator: Simulator
  platform: Platform
  providers: IdentityProviders
  /** Address of a registry that requires credentials and accepts none. */
  registryHost: string
  tick: (name: string) => Promise<void>
}

const limits = ['SIGN_IN_USER', 'SIGN_IN_ADDRESS', 'SIGN_IN_STEP', 'SETUP', 'REFRESH', 'ENROLL', 'BATCH', 'API']

const settings = {
  ...Object.fromEntries(limits.map((name) => [`PLAT_LIMIT_${name}_PER_MINUTE`, '60000'])),
  PLAT_LIMIT_API_BURST: '5000',
  PLAT_HEARTBEAT_INTERVAL_SECONDS: '1',
  PLAT_OUTBOX_RETRY_SECONDS: '1',
  PLAT_LOG_LEVEL: 'error',
}

export async function startEnvironment(): Promise<Environment> {
  await using resources = new AsyncDisposableStack()
  const [plain = 0, secure = 0, registryPort = 0, ...receiverPorts] = await freePorts(5)
  const providers = resources.use(await startIdentityProviders([plain, secure]))
  const registry = resources.use(
    createServer((_, response) => void response.writeHead(401, { 'www-authenticate': 'Basic realm="private"' }).end()),
  )
  await once(registry.listen(registryPort, '127.0.0.1'), 'listening')
  const registryHost = `127.0.0.1:${registryPort}`
  const receivers = receiverPorts.map((port) => `127.0.0.1:${port}`)
  const simulator = resources.use(
    await startSimulator({
      stage: 'dev',
      port: 0,
      environment: {
        ...settings,
        PLAT_OUTBOUND_ALLOW: [...receivers, providers.peer.host, `localhost:${secure}`].join(),
        PLAT_REGISTRY_ALLOW: registryHost,
        PLAT_MODULE_SOURCES: `${registryHost}/modules/private`,
        PLAT_RELEASE_SOURCE: `${registryHost}/releases`,
      },
      functionsDir: inject('functionsDir'),
      hasClocks: false,
      onOutput: () => {},
      log: () => {},
    }),
  )
  // A second deployment reads the initial admin token, which it must keep.
  await simulator.bootstrap()
  const options = { baseUrl: simulator.url, username: 'admin', password: 'correct horse battery', receivers }
  const platform = await connect(options)
  const setup = { ...setupBody(options), initialAdminToken: await simulator.initialAdminToken() }
  expectStatus(await platform.anonymous.post(completeSetupPath, setup), 200)
  const tick = (name: string) =>
    simulator.tick(simulator.functions.find((each) => each.name === name)?.functionName ?? name)
  const started = resources.move()
  return {
    simulator,
    platform,
    providers,
    registryHost,
    tick,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  }
}
