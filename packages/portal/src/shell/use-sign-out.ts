import { useNavigate } from '@tanstack/react-router'
import { endSession, forgetUser } from '../api/sign-in.ts'
import { showErrorToast } from '../ui/toast.tsx'

export function useSignOut(): () => void {
  const navigate = useNavigate()
  const signOut = async () => {
    await endSession()
    await navigate({ to: '/sign-in' })
    // Only when no page that needs the data is rendered any more.
    forgetUser()
  }
  return () => void signOut().catch((error: unknown) => showErrorToast('Failed to sign out', error))
}
