import { useRouter } from '@tanstack/react-router'
import { CloudOff } from 'lucide-react'
import { useEffect, useRef } from 'react'
import { useIsOffline } from '../api/account.ts'
import { queries } from '../api/query.ts'
import styles from './shell.module.css'

/** Shown once per page while the platform does not respond. Refetches failed queries when it does. */
export function OfflineBanner() {
  const isAway = useIsOffline()
  const wasAway = useRef(false)
  const router = useRouter()
  useEffect(() => {
    if (wasAway.current && !isAway) {
      void queries.refetchQueries({ type: 'active', predicate: ({ state }) => state.status === 'error' })
      void router.invalidate()
    }
    wasAway.current = isAway
  }, [isAway, router])
  return (
    <div role="status" className={styles['away']}>
      {isAway && (
        <p>
          <CloudOff size={16} aria-hidden /> The platform is not responding. Data may be outdated. Retrying
          automatically.
        </p>
      )}
    </div>
  )
}
