import type { Schemas } from '../../api/client.ts'
import { Badge } from '../../ui/badge.tsx'

type Webhook = Schemas['Webhook']

export function WebhookState({ webhook: { enabled, disabledAt, failureCount } }: { webhook: Webhook }) {
  if (disabledAt !== undefined) return <Badge tone="bad">Disabled after repeated failures</Badge>
  if (!enabled) return <Badge>Disabled</Badge>
  if (failureCount === 0) return <Badge tone="good">Enabled</Badge>
  return <Badge tone="warn">{failureCount === 1 ? '1 failure' : `${failureCount} failures in a row`}</Badge>
}
