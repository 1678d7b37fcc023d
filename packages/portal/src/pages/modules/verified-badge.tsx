import { ShieldAlert, ShieldCheck } from 'lucide-react'
import { Badge } from '../../ui/badge.tsx'
import styles from './modules.module.css'

interface Verification {
  verified: boolean
  verifiedBy?: string | undefined
  unverifiedReason?: string | undefined
}

/** Shows whether a trusted key has signed the image, with the name of the key or the reason. */
export const VerifiedBadge = ({ verified, verifiedBy, unverifiedReason }: Verification) => (
  <span className={styles['verified']}>
    {verified ? (
      <Badge variant="good" icon={ShieldCheck}>
        Verified
      </Badge>
    ) : (
      <Badge variant="warn" icon={ShieldAlert}>
        Not verified
      </Badge>
    )}
    <span className={styles['reason']}>
      {verified
        ? verifiedBy !== undefined && `Signed with the key “${verifiedBy}”`
        : (unverifiedReason ?? 'Not signed by a trusted key.')}
    </span>
  </span>
)
