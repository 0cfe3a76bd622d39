'use strict';

// The Partner API as a Zapier app: polling triggers for events and for new bookings, an action
// that creates a client, and a search for clients. Put this file into a folder as index.js:
// /docs/guides/kits has the commands. REST hooks are impossible, because only the coach can
// register a URL.

const { version: platformVersion } = require('zapier-platform-core');

const EVENTS = {
  new_client: 'Client created',
  check_in_submitted: 'Check-in submitted',
  low_check_in_score: 'Low check-in score',
  system_grade_drop: 'Wellness system graded lower',
  phase_advanced: 'Phase advanced',
  message_received: 'Message received',
  contact_created: 'Contact created',
  contact_updated: 'Contact changed',
  contact_merged: 'Contacts merged',
  opportunity_created: 'Opportunity created',
  opportunity_updated: 'Opportunity changed',
  opportunity_stage_changed: 'Opportunity moved to another stage',
  booking_created: 'Booking made',
  booking_rescheduled: 'Booking moved',
  booking_cancelled: 'Booking cancelled',
};
// Zapier holds a Zap that gets more new events from one poll.
const MAX_EVENTS = 100;

// Sends a request to the API. `path` begins with /v1.
const call = async (z, bundle, path, options = {}) => {
  const base = bundle.authData.base.replace(/\/+$/, '');
  const response = await z.request({ url: base + path, skipThrowForStatus: true, ...options });
  if (response.status === 429) {
    throw new z.errors.ThrottledError('The rate limit of the key is used up.', Number(response.getHeader('retry-after')) || 60);
  }
  const { error, code } = response.data || {};
  // With this error Zapier pauses the Zap and asks the user to connect again.
  if (response.status === 401) {
    throw new z.errors.ExpiredAuthError(error || 'The API does not know the key.');
  }
  if (response.status >= 400) {
    throw new z.errors.Error(error || `The API answered ${response.status}.`, code || 'unavailable', response.status);
  }
  return response.data;
};

const authorize = (request, z, bundle) => {
  request.headers.Authorization = `Bearer ${bundle.authData.key}`;
  return request;
};

// The fields that have a value. A mapped field without a value is an empty text, which the API refuses.
const given = (fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => `${value ?? ''}`.trim() !== ''));

const readEvents = async (z, bundle, type) => {
  const { data } = await call(z, bundle, '/v1/events', { params: { order: 'desc', types: type, limit: MAX_EVENTS } });
  if (data.length === 0 && bundle.meta && bundle.meta.isLoadingSample) {
    return (await call(z, bundle, '/v1/events/samples', { params: { type } })).data;
  }
  return data;
};

const createClient = async (z, bundle) => {
  const { reference, ...body } = given(bundle.inputData);
  // A hash, since a header takes ASCII only. Without the encoding `z.hash` drops the upper bits of other characters.
  const headers = reference !== undefined ? { 'Idempotency-Key': z.hash('sha256', `${reference}`, 'hex', 'utf8') } : {};
  const client = await call(z, bundle, '/v1/clients', { method: 'POST', headers, body });
  return { id: client.client_id, ...client };
};

const findClients = async (z, bundle) => {
  const { external_id, email } = given(bundle.inputData);
  if (!external_id && !email) {
    throw new z.errors.Error('Give an external id or an e-mail address.', 'invalid_request', 400);
  }
  const params = external_id ? { external_id } : { email };
  const { clients } = await call(z, bundle, '/v1/clients', { params });
  return clients.map((client) => ({ id: client.client_id, ...client }));
};

const CLIENT = {
  id: 'client_019a9f0c6d5e7b3c8f1a2b3c4d5e6f70',
  client_id: 'client_019a9f0c6d5e7b3c8f1a2b3c4d5e6f70',
  full_name: 'Grace Hopper',
  email: 'grace@example.com',
};

module.exports = {
  version: '1.0.0',
  platformVersion,
  authentication: {
    type: 'custom',
    fields: [
      {
        key: 'base',
        label: 'Address of the API',
        required: true,
        default: 'https://api.example.com',
        helpText: 'Of the sandbox while you build, if there is one, then of the live service. Without a path.',
      },
      {
        key: 'key',
        label: 'Partner key',
        type: 'password',
        required: true,
        helpText: 'The coach creates the key under Settings, Private Integrations, and selects the events that it may read.',
      },
    ],
    test: (z, bundle) => call(z, bundle, '/v1/ping'),
    connectionLabel: (z, bundle) => bundle.inputData.coach.name,
  },
  beforeRequest: [authorize],
  triggers: {
    event: {
      key: 'event',
      noun: 'Event',
      display: { label: 'New Event', description: 'Triggers when something happens to a client, contact, opportunity or booking.' },
      operation: {
        type: 'polling',
        inputFields: [{ key: 'type', label: 'Event', choices: EVENTS, required: true, altersDynamicFields: false }],
        perform: (z, bundle) => readEvents(z, bundle, bundle.inputData.type),
        sample: {
          id: 'evt_019a9f0c6d5e8b3c8f1a2b3c4d5e6f72',
          type: 'new_client',
          timestamp: '2026-11-20T09:30:00.000Z',
          data: {
            client: { id: CLIENT.id },
            created_at: '2026-11-20T09:30:00.000Z',
            source: 'partner_api',
          },
        },
      },
    },
    booking: {
      key: 'booking',
      noun: 'Booking',
      display: { label: 'New Booking', description: 'Triggers when an appointment is booked.' },
      operation: {
        type: 'polling',
        perform: (z, bundle) => readEvents(z, bundle, 'booking_created'),
        sample: {
          id: 'evt_019a9f0c6d5e8b3c8f1a2b3c4d5e6f74',
          type: 'booking_created',
          timestamp: '2026-11-20T09:30:00.000Z',
          data: {
            contact: { id: '019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f75' },
            booking: {
              id: '019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f76',
              calendar_id: '019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f77',
              starts_at: '2026-11-23T09:30:00.000Z',
              ends_at: '2026-11-23T10:30:00.000Z',
              timezone: 'Europe/Berlin',
              status: 'confirmed',
            },
          },
        },
      },
    },
  },
  creates: {
    client: {
      key: 'client',
      noun: 'Client',
      display: { label: 'Create Client', description: 'Creates a client of the coach.' },
      operation: {
        inputFields: [
          { key: 'email', label: 'E-mail address', required: true },
          { key: 'full_name', label: 'Full name' },
          { key: 'phone', label: 'Phone' },
          { key: 'goals', label: 'Goals', type: 'text' },
          { key: 'external_id', label: 'External id', helpText: 'The id of the client in your system.' },
          {
            key: 'send_welcome',
            label: 'Send the welcome',
            type: 'boolean',
            default: 'true',
            helpText: 'Mails the client a password and the intake form. Otherwise the answer has them.',
          },
          {
            key: 'reference',
            label: 'Reference',
            helpText:
              'What this creation is about in your system, such as the id of an order. The client is created once for ' +
              'a reference. Without one the e-mail address counts.',
          },
        ],
        perform: createClient,
        sample: { ...CLIENT, welcome_email_sent: true, intake_url: null },
      },
    },
  },
  searches: {
    client: {
      key: 'client',
      noun: 'Client',
      display: { label: 'Find Client', description: 'Finds a client by external id, or else by e-mail address.' },
      operation: {
        inputFields: [
          { key: 'external_id', label: 'External id' },
          { key: 'email', label: 'E-mail address' },
        ],
        perform: findClients,
        sample: { ...CLIENT, is_active: true, current_phase: null, created_at: '2026-11-20T09:30:00.000Z', external_id: null },
      },
    },
  },
  searchOrCreates: {
    client: {
      key: 'client',
      display: { label: 'Find or Create Client', description: 'Finds a client, or creates one.' },
      search: 'client',
      create: 'client',
    },
  },
};
