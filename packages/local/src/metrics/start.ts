import type { EmulatorAddresses } from '../emulators/http/environment.ts'
import type { Broker } from '../emulators/iot/broker.ts'
import type { Settings } from '../settings.ts'
import { createMetrics, gauge, type Metrics } from './metrics.ts'
import type { Interceptor } from '../gateway/exchange.ts'
import { createScrape } from './scrape.ts'
import { watchEmulators } from './emulator-metrics.ts'

export function startMetrics(
  { functionThreads, metricsToken }: Settings,
  emulators: EmulatorAddresses,
  channel: Pick<Broker, 'count'>,
): Metrics & { scrape: Interceptor } {
  const metrics = createMetrics(functionThreads)
  watchEmulators(metrics, emulators)
  const channels = gauge(metrics.registry, 'platform_channels', 'Open control channels of relays.')
  metrics.onScrape(async () => channels.set(channel.count()))
  return { ...metrics, scrape: createScrape(metrics, metricsToken) }
}
