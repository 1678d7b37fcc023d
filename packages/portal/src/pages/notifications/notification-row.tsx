import { Link } from '@tanstack/react-router'
import { Check } from 'lucide-react'
import type { MouseEvent } from 'react'
import { useMe } from '../../api/account.ts'
import { Button } from '../../ui/button.tsx'
import { classes } from '../../ui/class-names.ts'
import { Time } from '../../ui/time.tsx'
import { aboutOf } from './about.ts'
import styles from './notifications.module.css'
import { Severity } from './severity.tsx'
import { markRead, type Notification } from './use-notifications.ts'

export function NotificationRow({ notification }: { notification: Notification }) {
  const { id, title, body, severity, read, createdAt } = notification
  const { permissions } = useMe()
  const about = aboutOf(notification)
  const isOpen = about !== undefined && (about.needs === undefined || permissions.includes(about.needs))
  const mark = () => void markRead([id])
  const markAndGoOn = ({ currentTarget }: MouseEvent<HTMLElement>) => {
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
        {isOpen && (
          <Link {...about.to} onClick={() => !read && mark()}>
            {about.label}
          </Link>
        )}
        {!read && (
          <Button look="quiet" icon={Check} aria-label={`Mark as read: ${title}`} onClick={markAndGoOn}>
            Mark as read
          </Button>
        )}
      </div>
    </li>
  )
}

/** The button disappears when it is pressed, so the focus moves to the next one. */
function focusNext(button: HTMLElement): void {
  const list = button.closest('ul')
  const buttons = [...(list?.querySelectorAll('button') ?? [])]
  const index = buttons.findIndex((each) => each === button)
  ;(buttons[index + 1] ?? buttons[index - 1] ?? list)?.focus()
}
