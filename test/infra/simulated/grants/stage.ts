import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { inject } from 'vitest'
import { connect } from '../../../conformance/support/platform.ts'
import { type Simulator, startSimulator } from '../../../simulator/simulator.ts'
import { type Peers, startPeers } from './sign-in.ts'
import type { Scene } from './withholding.ts'

/** A simulator that has not begun, with everything beside it that journeys need. */
export interface Stage extends AsyncDisposable {
  simulator: Simulator
  peers: Peers
  /** A scene with an organisation of its own. */
  newScene: () => Promise<Scene>
}

/** More than journeys ask for, and soon what the sweep looks at only after a while. */
const roomy = Object.fromEntries(
  ['SIGN_IN_USER', 'SIGN_IN_ADDRESS', 'SIGN_IN_STEP', 'SETUP', 'REFRESH', 'ENROLL', 'BATCH', 'API']
    .map((name) => [`PLAT_LIMIT_${name}_PER_MINUTE`, '60000'])
    .concat([
      ['PLAT_LIMIT_API_BURST', '5000'],
      ['PLAT_HEARTBEAT_INTERVAL_SECONDS', '1'],
      ['PLAT_OUTBOX_RETRY_SECONDS', '1'],
      ['PLAT_LOG_LEVEL', 'error'],
    ]),
)

export async function startStage(): Promise<Stage> {
  await using parts = new AsyncDisposableStack()
  const [plain = 0, secure = 0, ...free] = await freePorts(8)
  const peers = parts.use(await startPeers([plain, secure]))
  const receivers = free.map((port) => `127.0.0.1:${port}`)
  const simulator = parts.use(
    await startSimulator({
      stage: 'dev',
      port: 0,
      environment: { ...roomy, PLAT_OUTBOUND_ALLOW: [...receivers, peers.peer.host, `localhost:${secure}`].join() },
      functionsDir: inject('functionsDir'),
      hasClocks: false,
      begins: false,
      onOutput: () => {},
      log: () => {},
    }),
  )
  let scenes = 0
  /** Two at a time: scenes that are played on at once listen at ports of their own. */
  const nextReceivers = () => {
    const first = (scenes++ * 2) % receivers.length
    return receivers.slice(first, first + 2)
  }
  const newScene = async (): Promise<Scene> => {
    const administrator = { username: 'admin', password: 'correct horse battery' }
    const platform = await connect({ baseUrl: simulator.url, ...administrator, receivers: nextReceivers() })
    const tick = (name: string) =>
      simulator.tick(simulator.functions.find((each) => each.name === name)?.functionName ?? name)
    return { simulator, platform, tick }
  }
  const started = parts.move()
  return { simulator, peers, newScene, [Symbol.asyncDispose]: () => started.disposeAsync() }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(servers.map(async (server) => once(server.close(), 'close')))
  return ports
}
