import { expectStatus } from '../conformance/support/answer.ts'
import { connect } from '../conformance/support/platform.ts'
import { deployment } from './components.ts'
import { options, setupRequest } from './platform.ts'
import { type Simulator, startSimulator } from '../simulator/simulator.ts'

interface SimulationOptions {
  receivers?: string[]
  beforeSetup?: (simulator: Simulator) => Promise<void>
}

export async function startSimulatedPlatform(
  environment: Record<string, string> = {},
  { receivers = [], beforeSetup = async () => {} }: SimulationOptions = {},
) {
  await using parts = new AsyncDisposableStack()
  const lines: string[] = []
  const simulator = parts.use(
    await startSimulator({
      stage: 'dev',
      port: 0,
      environment: { PLAT_LOG_LEVEL: 'warn', ...environment },
      functionsDir: (await deployment()).functionsDir,
      hasClocks: false,
      onOutput: (name, text) => lines.push(`${name}: ${text}`),
      log: (message, details) => lines.push(`${message} ${JSON.stringify(details)}`),
    }),
  )
  await beforeSetup(simulator)
  const initialAdminToken = await simulator.initialAdminToken()
  const api = await connect({ ...options, receivers, baseUrl: simulator.url })
  expectStatus(await api.anonymous.post('/api/v1/setup/complete', setupRequest(initialAdminToken)), 200)
  const started = parts.move()
  return {
    simulator,
    api,
    tick: simulator.tick,
    lines,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  }
}

export type SimulatedPlatform = Awaited<ReturnType<typeof startSimulatedPlatform>>
