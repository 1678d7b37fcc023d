import { useQuery } from '@tanstack/react-query'
import { CircleAlert, CircleCheck, CircleDashed, CircleOff, type LucideIcon } from 'lucide-react'
import { api, unwrap } from '../../api/client.ts'
import { pollEvery, queries } from '../../api/query.ts'
import { Badge, type BadgeVariant } from '../../ui/badge.tsx'
import type { Provider } from './provider-types.ts'

const queryKey = ['identity-providers']
const pollSeconds = 15

/** Polls the identity providers, because the result of a consent request changes their status. */
export const useProviders = () =>
  useQuery({
    queryKey,
    queryFn: () => unwrap(api.GET('/api/v1/platform/identity/providers')),
    refetchInterval: pollEvery(pollSeconds),
  })

/** Refetches the providers, including those of the sign-in page. */
export async function refreshProviders(): Promise<void> {
  void queries.invalidateQueries({ queryKey: ['sign-in-choices'] })
  await queries.invalidateQueries({ queryKey })
}

const variants: Record<Provider['status'], [BadgeVariant, LucideIcon, string]> = {
  Configured: ['good', CircleCheck, 'Configured'],
  ConsentPending: ['busy', CircleDashed, 'Consent pending'],
  ConsentGranted: ['good', CircleCheck, 'Consent granted'],
  ConsentDenied: ['bad', CircleAlert, 'Consent denied'],
  Disabled: ['quiet', CircleOff, 'Disabled'],
}

export function ProviderStatus({ status }: { status: Provider['status'] }) {
  const [variant, icon, text] = variants[status]
  return (
    <Badge variant={variant} icon={icon}>
      {text}
    </Badge>
  )
}
