"""The tools that each key has, in the order of the list."""

BOOKING_WRITES = ("create_booking", "reschedule_booking", "cancel_booking")
PARTNER_TOOLS = [
    "whoami",
    "find_clients",
    "get_client",
    "create_client",
    "update_client",
    "get_client_compliance",
    "list_client_check_ins",
    "list_client_daily_logs",
    "list_events",
]
CRM_TOOLS = [
    "whoami",
    "find_contacts",
    "get_contact",
    "create_contact",
    "update_contact",
    "find_opportunities",
    "get_opportunity",
    "create_opportunity",
    "update_opportunity",
    "list_calendars",
    "find_free_times",
    "find_bookings",
    "get_booking",
    *BOOKING_WRITES,
    "list_workflows",
    "list_events",
]
TOOLS_WITHOUT_BOOKING = [tool for tool in CRM_TOOLS if tool not in BOOKING_WRITES]
# Writes that change what is there, so that hosts ask first.
DESTRUCTIVE = {"update_client", "update_contact", "update_opportunity", "reschedule_booking", "cancel_booking"}
WRITES = DESTRUCTIVE | {"create_client", "create_contact", "create_opportunity", "create_booking"}
