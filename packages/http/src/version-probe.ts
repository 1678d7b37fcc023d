import { isProbe, type ProbeResponse, type ProbeEvent } from '@platform/core/updates/version-probe'
import { version } from '@platform/core/lib/version'

export interface WithVersionProbe<Event, Result> {
  (event: Event): Promise<Result>
  (event: ProbeEvent): Promise<ProbeResponse>
}

/** Creates a function that responds to version probes, and passes other events to the handler. */
export function withVersionProbe<Event, Result>(
  handler: (event: Event) => Promise<Result>,
): WithVersionProbe<Event, Result> {
  function handle(event: Event): Promise<Result>
  function handle(event: ProbeEvent): Promise<ProbeResponse>
  async function handle(event: Event | ProbeEvent): Promise<Result | ProbeResponse> {
    return isProbe(event) ? { version } : handler(event)
  }
  return handle
}
