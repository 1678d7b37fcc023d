import { CircleAlert, CircleCheck, CircleDashed, CircleOff, type LucideIcon } from 'lucide-react'
import { Badge, type BadgeVariant } from '../../ui/badge.tsx'
import type { Provider } from './provider-types.ts'

const looks: Record<Provider['status'], [BadgeVariant, LucideIcon, string]> = {
  Configured: ['good', CircleCheck, 'Configured'],
  ConsentPending: ['busy', CircleDashed, 'Consent pending'],
  ConsentGranted: ['good', CircleCheck, 'Consent granted'],
  ConsentDenied: ['bad', CircleAlert, 'Consent denied'],
  Disabled: ['quiet', CircleOff, 'Disabled'],
}

export function ProviderStatus({ status }: { status: Provider['status'] }) {
  const [tone, icon, text] = looks[status]
  return (
    <Badge tone={tone} icon={icon}>
      {text}
    </Badge>
  )
}
