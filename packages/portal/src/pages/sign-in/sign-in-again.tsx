import { nameOf, type UserNames } from '@platform/contract/user-name'
import { useEffect, useEffectEvent, useState } from 'react'
import { readUser } from '../../api/session.ts'
import { onSessionChange, openSession, type SignInProof } from '../../api/sign-in.ts'
import { removeOtherDrafts } from '../../lib/draft-storage.ts'
import { Button } from '../../ui/button.tsx'
import styles from '../../ui/dialog.module.css'
import { unload } from '../../ui/leave.tsx'
import { Modal } from '../../ui/modal.tsx'
import { PasswordForm, Providers } from './sign-in-page.tsx'
import { withTimeToRetry } from './use-sign-in.ts'

interface SignInAgainProps {
  user: UserNames & { id: string }
  /** Another user who has signed in. */
  initialOther: UserNames | undefined
  returnTo: string
  onSignedIn: () => void
}

/**
 * Lets the same user sign in again, in this dialog or in another tab. Another user can continue only without the
 * unsaved input.
 */
export function SignInAgain({ user, initialOther, returnTo, onSignedIn }: SignInAgainProps) {
  const [other, setOther] = useState(initialOther)
  const check = async () => {
    const currentUser = await readUser()
    if (currentUser?.id === user.id) onSignedIn()
    else setOther(currentUser)
  }
  const onChange = useEffectEvent(() => void check())
  useEffect(() => onSessionChange(() => onChange()), [])
  const signIn = async (proof: SignInProof) => {
    await openSession(proof).catch((failure: unknown) => {
      throw withTimeToRetry(failure)
    })
    await check()
  }
  return (
    <Modal title={other ? 'Another user is signed in' : 'Sign in again'} isCovering>
      {other ? (
        <OtherUser user={user} other={other} onReturn={() => setOther(undefined)} />
      ) : (
        <>
          <p>Your session has ended. Sign in as {nameOf(user)}. The page keeps your input.</p>
          <PasswordForm username={user.username} signInWithPassword={signIn} />
          <Providers returnTo={returnTo} />
          <div className={styles['actions']}>
            <Button onClick={() => leave('/sign-in')}>Discard input and leave</Button>
          </div>
        </>
      )}
    </Modal>
  )
}

interface OtherUserProps {
  user: UserNames
  other: UserNames
  onReturn: () => void
}

const OtherUser = ({ user, other, onReturn }: OtherUserProps) => (
  <>
    <p>
      {nameOf(other)} has signed in with this browser. This page has unsaved input of {nameOf(user)}.
    </p>
    <div className={styles['actions']}>
      <Button onClick={() => leave('/')}>Discard input and continue as {nameOf(other)}</Button>
      <Button variant="primary" onClick={onReturn}>
        Sign in as {nameOf(user)}
      </Button>
    </div>
  </>
)

function leave(path: string): void {
  removeOtherDrafts()
  unload(() => location.assign(path))
}
