import { Link } from '@tanstack/react-router'
import { useSummary } from '../../../api/account.ts'
import { Badge } from '../../../ui/badge.tsx'
import { Loaded } from '../../../ui/state.tsx'
import { Time } from '../../../ui/time.tsx'
import styles from './widgets.module.css'

/** Whether there is a newer release of the platform. */
export const PlatformUpdate = () => (
  <Loaded query={useSummary()} what="the release">
    {({ update }) => (
      <div className={styles['stack']}>
        {update?.updateAvailable ? (
          <Badge tone="busy">Version {update.latestVersion} is available</Badge>
        ) : (
          <Badge tone="good">No update is waiting</Badge>
        )}
        <p>
          Version {update?.currentVersion} serves.{' '}
          {update?.checkedAt === undefined ? (
            'Nobody has looked for a newer one yet.'
          ) : (
            <>
              Looked <Time at={update.checkedAt} />.
            </>
          )}
        </p>
        <Link to="/settings/updates">Go to updates</Link>
      </div>
    )}
  </Loaded>
)
