import type { LinkProps } from '@tanstack/react-router'
import type { Permission } from '../../api/account.ts'
import type { Schemas } from '../../api/client.ts'
import { addressOf } from '../../lib/address-of.ts'

type Notification = Schemas['Notification']

interface About {
  label: string
  to: LinkProps
  needs?: Permission
}

/** The page of a notification's subject and the permission it needs. */
export function aboutOf({ type, resource }: Pick<Notification, 'type' | 'resource'>): About | undefined {
  if (type.startsWith('Update')) {
    return { label: 'Go to updates', to: { to: '/settings/updates' }, needs: 'platform:admin' }
  }
  if (type.startsWith('Module')) {
    return { label: 'Show module', to: { to: '/modules', search: { module: resource } }, needs: 'modules:read' }
  }
  if (type === 'WebhookDisabled') {
    return {
      label: 'Show webhook',
      to: { to: '/settings/webhooks', search: { webhook: resource } },
      needs: 'users:admin',
    }
  }
  const to = addressOf(resource)
  if (resource.startsWith('clus_') && to) return { label: 'Show cluster', to, needs: 'clusters:read' }
  if (resource.startsWith('batch_') && to) return { label: 'Show batch', to, needs: 'jobs:read' }
  if (resource.startsWith('job_') && to) return { label: 'Show job', to, needs: 'jobs:read' }
  // Other alerts concern the user's own sessions.
  return type === 'SecurityAlert' ? { label: 'Go to your account', to: { to: '/settings/account' } } : undefined
}
