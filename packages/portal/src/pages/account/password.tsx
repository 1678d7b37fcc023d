import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useMe } from '../../api/account.ts'
import { isApiError, withMessage } from '../../api/api-error.ts'
import { api, expectNoBody } from '../../api/client.ts'
import { Card } from '../../ui/card.tsx'
import { PasswordField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { showToast } from '../../ui/toast.tsx'
import styles from './account.module.css'

export function Password() {
  const { username, authProvider } = useMe()
  const queries = useQueryClient()
  const [changes, setChanges] = useState(0)
  if (authProvider !== 'local') {
    return (
      <Card title="Password">
        <p className={styles['text']}>Your identity provider manages your account. Change your password there.</p>
      </Card>
    )
  }
  const change = async ({ currentPassword = '', newPassword = '' }: FormValues) => {
    await send(currentPassword, newPassword)
    showToast('Password changed', 'All your other sessions have ended.')
    setChanges(changes + 1)
    await queries.invalidateQueries({ queryKey: ['sessions'] })
  }
  return (
    <Card title="Change password">
      <p className={styles['text']}>This ends all your other sessions. API tokens stay valid.</p>
      <div className={styles['form']}>
        {/* The key changes after each success, so that the form is empty again. */}
        <Form key={changes} submitLabel="Change password" onSubmit={change}>
          {/* Password managers store a password together with the user name. */}
          <input type="text" name="username" value={username} autoComplete="username" readOnly hidden />
          <PasswordField
            name="currentPassword"
            label="Current password"
            autoComplete="current-password"
            maxLength={1024}
            required
          />
          <PasswordField
            name="newPassword"
            label="New password"
            hint="At least 8 characters."
            check={(password) => (password.length < 8 ? 'Enter at least 8 characters.' : undefined)}
            autoComplete="new-password"
            maxLength={1024}
          />
          <PasswordField
            name="again"
            label="Confirm new password"
            check={(confirmation, { newPassword }) =>
              confirmation === newPassword ? undefined : 'The passwords do not match.'
            }
            autoComplete="new-password"
            maxLength={1024}
          />
        </Form>
      </div>
    </Card>
  )
}

async function send(currentPassword: string, newPassword: string): Promise<void> {
  try {
    await expectNoBody(api.PUT('/api/v1/users/me/password', { body: { currentPassword, newPassword } }))
  } catch (error) {
    if (!isApiError(error, 'invalid_credentials')) throw error
    const message = 'This is not your current password.'
    throw withMessage(error, message, [{ in: 'body', path: '/currentPassword', message }])
  }
}
