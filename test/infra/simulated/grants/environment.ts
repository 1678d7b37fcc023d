import { freePorts } from '../../../support/free-ports.ts'
import { startServer } from '../../../support/http-server.ts'
import { startSimulatedPlatform } from '../../../support/simulator.ts'
import { startIdentityProviders } from './identity-providers.ts'

const limits = [
  'SIGN_IN_USER',
  'SIGN_IN_ADDRESS',
  'SIGN_INS',
  'SIGN_IN_STEP',
  'SETUP',
  'REFRESH',
  'ENROLL',
  'BATCH',
  'API',
]

const settings = {
  ...Object.fromEntries(limits.map((name) => [`PLAT_LIMIT_${name}_PER_MINUTE`, '60000'])),
  PLAT_LIMIT_API_BURST: '5000',
  PLAT_HEARTBEAT_INTERVAL_SECONDS: '1',
  PLAT_OUTBOX_RETRY_SECONDS: '1',
  PLAT_LOG_LEVEL: 'error',
}

export async function startEnvironment() {
  await using resources = new AsyncDisposableStack()
  const [plainPort = 0, securePort = 0, ...receiverPorts] = await freePorts(4)
  const providers = resources.use(await startIdentityProviders([plainPort, securePort]))
  const headers = { 'www-authenticate': 'Basic realm="private"' }
  const { host: registryHost } = resources.use(await startServer(() => ({ status: 401, headers })))
  const receivers = receiverPorts.map((port) => `127.0.0.1:${port}`)
  const simulatedPlatform = await startSimulatedPlatform(
    {
      ...settings,
      PLAT_OUTBOUND_ALLOW: [providers.peer.host, `localhost:${securePort}`].join(),
      PLAT_WEBHOOK_ALLOW: receivers.join(),
      PLAT_REGISTRY_ALLOW: registryHost,
      PLAT_MODULE_SOURCES: `${registryHost}/modules/private`,
      PLAT_RELEASE_SOURCE: `${registryHost}/releases`,
    },
    // A second deployment reads the initial admin token, which it must keep.
    { receivers, beforeSetup: ({ bootstrap }) => bootstrap() },
  )
  const { simulator, api: platform, tick } = resources.use(simulatedPlatform)
  const started = resources.move()
  return { simulator, platform, providers, registryHost, tick, [Symbol.asyncDispose]: () => started.disposeAsync() }
}

export type Environment = Awaited<ReturnType<typeof startEnvironment>>
