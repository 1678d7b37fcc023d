import { Link, type LinkProps } from '@tanstack/react-router'
import { Check } from 'lucide-react'
import type { MouseEvent } from 'react'
import { type Permission, useMe } from '../../api/account.ts'
import { resourceLink } from '../../lib/resource-link.ts'
import { Button } from '../../ui/button.tsx'
import { classes } from '../../ui/class-names.ts'
import { Time } from '../../ui/time.tsx'
import styles from './notifications.module.css'
import { Severity } from './severity.tsx'
import { markRead, type Notification } from './use-notifications.ts'

export function NotificationRow({ notification }: { notification: Notification }) {
  const { id, title, body, severity, read, createdAt } = notification
  const { permissions } = useMe()
  const subject = subjectOf(notification)
  const isAccessible =
    subject !== undefined && (subject.permission === undefined || permissions.includes(subject.permission))
  const mark = () => void markRead([id])
  const markAndFocusNext = ({ currentTarget }: MouseEvent<HTMLElement>) => {
    focusNext(currentTarget)
    mark()
  }
  return (
    <li className={classes(styles['row'], !read && styles['unread'])}>
      <div className={styles['what']}>
        <h2>
          {!read && <span className="visually-hidden">Unread: </span>}
          {title}
        </h2>
        <Severity severity={severity} />
        <span className={styles['when']}>
          <Time at={createdAt} />
        </span>
      </div>
      <p className={styles['text']}>{body}</p>
      <div className={styles['actions']}>
        {isAccessible && (
          <Link {...subject.to} onClick={() => !read && mark()}>
            {subject.label}
          </Link>
        )}
        {!read && (
          <Button variant="quiet" icon={Check} aria-label={`Mark as read: ${title}`} onClick={markAndFocusNext}>
            Mark as read
          </Button>
        )}
      </div>
    </li>
  )
}

// A pressed button disappears, so the focus must move to the next one.
function focusNext(button: HTMLElement): void {
  const list = button.closest('ul')
  const buttons = [...(list?.querySelectorAll('button') ?? [])]
  const index = buttons.findIndex((each) => each === button)
  ;(buttons[index + 1] ?? buttons[index - 1] ?? list)?.focus()
}

interface Subject {
  label: string
  to: LinkProps
  permission?: Permission
}

// Returns the page that a notification is about, with the permission that the page requires.
function subjectOf({ type, resource }: Pick<Notification, 'type' | 'resource'>): Subject | undefined {
  if (type.startsWith('Update')) {
    return { label: 'Go to updates', to: { to: '/settings/updates' }, permission: 'platform:admin' }
  }
  if (type.startsWith('Module')) {
    return { label: 'Show module', to: { to: '/modules', search: { module: resource } }, permission: 'modules:read' }
  }
  if (type === 'WebhookDisabled') {
    return {
      label: 'Show webhook',
      to: { to: '/settings/webhooks', search: { webhook: resource } },
      permission: 'users:admin',
    }
  }
  if (type.startsWith('Cluster') && resource.startsWith('org_'))
    return { label: 'Show clusters', to: { to: '/clusters' }, permission: 'clusters:read' }
  const to = resourceLink(resource)
  if (resource.startsWith('clus_') && to) return { label: 'Show cluster', to, permission: 'clusters:read' }
  if (resource.startsWith('batch_') && to) return { label: 'Show batch', to, permission: 'jobs:read' }
  if (resource.startsWith('rupd_') && to) return { label: 'Show update', to, permission: 'clusters:admin' }
  if (resource.startsWith('job_') && to) return { label: 'Show job', to, permission: 'jobs:read' }
  if (resource.startsWith('idp_')) {
    const to = { to: '/settings/identity', search: { provider: resource } } as const
    return { label: 'Show provider', to, permission: 'platform:admin' }
  }
  // All other alerts are about sessions of the user.
  return type === 'SecurityAlert' ? { label: 'Go to your account', to: { to: '/settings/account' } } : undefined
}
