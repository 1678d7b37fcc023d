import { inject } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { connect, type Platform } from '../conformance/support/platform.ts'
import { options, setupRequest } from './platform.ts'
import { type Simulator, startSimulator } from '../simulator/simulator.ts'

export interface SimulatedPlatform extends AsyncDisposable {
  simulator: Simulator
  api: Platform
  tick: (name: string) => Promise<void>
  lines: string[]
}

export async function startSimulatedPlatform(environment: Record<string, string> = {}): Promise<SimulatedPlatform> {
  await using parts = new AsyncDisposableStack()
  const lines: string[] = []
  const simulator = parts.use(
    await startSimulator({
      stage: 'dev',
      port: 0,
      environment: { PLAT_LOG_LEVEL: 'warn', ...environment },
      functionsDir: inject('functionsDir'),
      hasClocks: false,
      onOutput: (name, text) => lines.push(`${name}: ${text}`),
      log: (message, details) => lines.push(`${message} ${JSON.stringify(details)}`),
    }),
  )
  const initialAdminToken = await simulator.initialAdminToken()
  const api = await connect({ ...options, baseUrl: simulator.url })
  expectStatus(await api.anonymous.post('/api/v1/setup/complete', setupRequest(initialAdminToken)), 200)
  const nameOf = (name: string) => simulator.functions.find((each) => each.name === name)?.functionName ?? name
  const started = parts.move()
  return {
    simulator,
    api,
    tick: (name) => simulator.tick(nameOf(name)),
    lines,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  }
}
