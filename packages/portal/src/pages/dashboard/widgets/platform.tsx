import { Link } from '@tanstack/react-router'
import { useSummary } from '../../../api/account.ts'
import { Badge, StatusBadge } from '../../../ui/badge.tsx'
import { Loaded } from '../../../ui/state.tsx'
import { Time } from '../../../ui/time.tsx'
import styles from './widgets.module.css'

const meanings = {
  Healthy: 'All required checks pass.',
  Degraded: 'The platform works with limitations.',
  Unhealthy: 'A critical check fails.',
}

export const PlatformHealth = () => (
  <Loaded query={useSummary()} what="the health">
    {({ health: { aggregate } }) => (
      <div className={styles['stack']}>
        <StatusBadge status={aggregate} title={meanings[aggregate]} />
        <Link to="/health">All checks</Link>
      </div>
    )}
  </Loaded>
)

export const PlatformUpdate = () => (
  <Loaded query={useSummary()} what="the release">
    {({ update }) => (
      <div className={styles['stack']}>
        {update?.updateAvailable ? (
          <Badge variant="busy">Version {update.latestVersion} is available</Badge>
        ) : (
          <Badge variant="good">Up to date</Badge>
        )}
        <p>
          Version {update?.currentVersion} is active.{' '}
          {update?.checkedAt === undefined ? (
            'Not checked for updates yet.'
          ) : (
            <>
              Checked <Time at={update.checkedAt} />.
            </>
          )}
        </p>
        <Link to="/settings/updates">Go to updates</Link>
      </div>
    )}
  </Loaded>
)
