import { Plus } from 'lucide-react'
import { useState } from 'react'
import { api, expectNoBody } from '../../api/client.ts'
import { queries } from '../../api/query.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextArea, TextField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'
import { showToast } from '../../ui/toast.tsx'

/** Writes an extra entry, about what has happened elsewhere. */
export function AddEntry() {
  const [isOpen, setIsOpen] = useState(false)
  const close = () => setIsOpen(false)
  return (
    <>
      <Button icon={Plus} onClick={() => setIsOpen(true)}>
        Add entry
      </Button>
      <Dialog
        isOpen={isOpen}
        onClose={close}
        title="Add an entry"
        description="For what happens outside the platform, such as an approval. It cannot be changed or removed later."
      >
        <Form
          submitLabel="Add entry"
          actions={<Button onClick={close}>Cancel</Button>}
          onSubmit={async ({ action = '', resource = '', detail = '' }) => {
            await expectNoBody(api.POST('/api/v1/platform/audit', { body: { action, resource, detail } }))
            await queries.invalidateQueries({ queryKey: ['audit'] })
            showToast('The entry joins the trail within moments')
            close()
          }}
        >
          <TextField name="action" label="Action" placeholder="change.approved" required maxLength={100} />
          <TextField name="resource" label="What it is about" placeholder="clus_…" required maxLength={200} />
          <TextArea name="detail" label="Detail" rows={4} maxLength={2000} isOptional />
        </Form>
      </Dialog>
    </>
  )
}
